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
    if (isListed(document, "readonlyInclude") && !isListed(document, "readonlyExclude")) {
        return "this file is read-only (files.readonlyInclude)";
    }
    if (uri.scheme !== "file" || (await isWritable(uri.fsPath))) return undefined;
    return "this file is read-only; make it writable first";
}

/** Whether a setting of VS Code's has a pattern of the document, of its whole path or of that in its folder. */
function isListed(document: vscode.TextDocument, key: string): boolean {
    const folder = vscode.workspace.getWorkspaceFolder(document.uri);
    const matches = (pattern: vscode.GlobPattern): boolean => vscode.languages.match({ pattern }, document) > 0;
    const isOf = (pattern: string): boolean =>
        matches(pattern) || (folder !== undefined && matches(new vscode.RelativePattern(folder, pattern)));
    const patterns = vscode.workspace.getConfiguration("files", document.uri).get<Record<string, boolean>>(key) ?? {};
    return Object.entries(patterns).some(([pattern, on]) => on && isOf(pattern));
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
