// The machine that the extension runs on, for `executable.ts`.

import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Machine } from "./executable";

export function machine(): Machine {
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    return {
        env: process.env,
        home: homedir(),
        folder: folders[0],
        folders,
        isTrusted: vscode.workspace.isTrusted,
        isExecutable,
        kindOf,
        isWindows: process.platform === "win32",
    };
}

function isExecutable(file: string): boolean {
    try {
        accessSync(file, process.platform === "win32" ? constants.F_OK : constants.X_OK);
        return statSync(file).isFile();
    } catch {
        return false;
    }
}

function kindOf(file: string): "file" | "folder" | undefined {
    try {
        return statSync(file).isDirectory() ? "folder" : "file";
    } catch {
        return undefined;
    }
}
