// Where the specd command is. The file system and the environment are given, so that this can be tested without them.

import * as path from "node:path";

export interface Machine {
    env: Readonly<Record<string, string | undefined>>;
    home: string;
    /** The first folder of the workspace, if any. */
    folder: string | undefined;
    /** All of them. */
    folders: readonly string[];
    /** Whether the user trusts them. */
    isTrusted: boolean;
    isExecutable: (file: string) => boolean;
    /** What is there, if anything. */
    kindOf: (file: string) => "file" | "folder" | undefined;
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
    const isRelative = isPath && !paths.isAbsolute(named);
    if (isRelative && machine.folder === undefined) return undefined;
    const at = (isRelative && machine.folder) || "";
    const folders = isPath ? [at] : (machine.env["PATH"] ?? machine.env["Path"] ?? "").split(paths.delimiter);
    for (const folder of folders) {
        if (!isPath && !paths.isAbsolute(folder)) continue; // it would mean another one for the program's own folder
        for (const ending of endings) {
            const file = folder ? paths.join(folder, named + ending) : named + ending;
            if (machine.isExecutable(file)) return file;
        }
    }
    return undefined;
}

/** Why `find` has found nothing, for the user. */
export function whyNoCommand(command: string, machine: Machine): string {
    const named = expand(command, machine);
    const paths = machine.isWindows ? path.win32 : path.posix;
    const isPath = named.includes("/") || (machine.isWindows && named.includes("\\"));
    const kind = isPath ? machine.kindOf(paths.resolve(machine.folder ?? machine.home, named)) : undefined;
    if (kind === "folder") return "is a folder and no program";
    return kind === "file" ? "is a file that may not be run (chmod +x makes it a program)" : "was not found";
}

/** Whether a program is not to be run since it is in a folder of the workspace, and the user does not trust that. */
export function isOffLimits(file: string, { folders, isTrusted, isWindows }: Machine): boolean {
    const paths = isWindows ? path.win32 : path.posix;
    const isIn = (folder: string): boolean => {
        const way = paths.relative(folder, file);
        return way.split(paths.sep)[0] !== ".." && !paths.isAbsolute(way);
    };
    return !isTrusted && folders.some(isIn);
}
