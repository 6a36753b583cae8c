// Whether a document may be changed. VS Code applies edits to read-only documents without a word, so we look first.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import * as vscode from "vscode";

const WRITABLE_BITS = 0o222;

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
    if (uri.scheme !== "file" || (await isWritable(uri.fsPath))) return undefined;
    return "this file is read-only; make it writable first";
}

/** Whether a file that is there may be written; for root too, who may write everything. */
async function isWritable(file: string): Promise<boolean> {
    try {
        if (!((await stat(file)).mode & WRITABLE_BITS)) return false;
    } catch {
        return true; // it is not on disk yet: nothing forbids it
    }
    return access(file, constants.W_OK).then(
        () => true,
        () => false,
    );
}
