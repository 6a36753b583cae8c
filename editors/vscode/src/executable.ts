// Where the specd command is. The file system and the environment are given, so that this can be tested without them.

import * as path from "node:path";

export interface Machine {
    env: Readonly<Record<string, string | undefined>>;
    home: string;
    /** The first folder of the workspace, if any. */
    folder: string | undefined;
    isExecutable: (file: string) => boolean;
    isWindows: boolean;
}

/** `~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}` in a setting. */
export function expand(text: string, machine: Machine): string {
    const home = text === "~" || /^~[\\/]/.test(text) ? machine.home + text.slice(1) : text;
    return home.replace(/\$\{(workspaceFolder|userHome|env:([^}]*))\}/g, (whole, name: string, variable?: string) => {
        if (name === "workspaceFolder") return machine.folder ?? whole;
        if (name === "userHome") return machine.home;
        return machine.env[variable ?? ""] ?? "";
    });
}

/** The file that `command` names, a path or a name on PATH; undefined if there is none. */
export function find(command: string, machine: Machine): string | undefined {
    const named = expand(command, machine);
    const paths = machine.isWindows ? path.win32 : path.posix;
    const endings = machine.isWindows ? ["", ...(machine.env["PATHEXT"] ?? ".EXE;.CMD;.BAT").split(";")] : [""];
    const isPath = named.includes("/") || (machine.isWindows && named.includes("\\"));
    const at = isPath && machine.folder && !paths.isAbsolute(named) ? machine.folder : "";
    const folders = isPath ? [at] : (machine.env["PATH"] ?? machine.env["Path"] ?? "").split(paths.delimiter);
    for (const folder of folders) {
        if (!isPath && !folder) continue;
        for (const ending of endings) {
            const file = folder ? paths.join(folder, named + ending) : named + ending;
            if (machine.isExecutable(file)) return file;
        }
    }
    return undefined;
}
