// What the keys and menus of package.json ask for with `when`.

import * as vscode from "vscode";

const told = new Map<string, boolean>();

/** Tell VS Code whether `specd.NAME` holds, if it was not told so already. */
export function tellContext(name: string, holds: boolean): void {
    if (told.get(name) === holds) return;
    told.set(name, holds);
    void vscode.commands.executeCommand("setContext", `specd.${name}`, holds);
}
