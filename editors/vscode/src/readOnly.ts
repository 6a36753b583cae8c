// Whether a document may be changed. VS Code applies edits to read-only documents without a word, so we look first.

import * as vscode from "vscode";

/** Why the document may not be changed, for the user; undefined if it may. */
export async function readOnlyReason(document: vscode.TextDocument): Promise<string | undefined> {
    const uri = document.uri;
    if (uri.scheme === "untitled") return undefined;
    if (vscode.workspace.fs.isWritableFileSystem(uri.scheme) === false) return "this document is read-only";
    const files = vscode.workspace.getConfiguration("files", uri);
    const listed = (key: string): boolean =>
        Object.entries(files.get<Record<string, boolean>>(key) ?? {}).some(
            ([pattern, on]) => on && vscode.languages.match({ pattern }, document) > 0,
        );
    if (listed("readonlyInclude") && !listed("readonlyExclude")) return "this file is read-only (files.readonlyInclude)";
    try {
        const stat = await vscode.workspace.fs.stat(uri);
        if (stat.permissions !== undefined && stat.permissions & vscode.FilePermission.Readonly) {
            return "this file is read-only; make it writable first";
        }
    } catch {
        return undefined; // not on disk yet: nothing forbids it
    }
    return undefined;
}
