// What is to be rewritten: fixed when the user asks for it, and looked at again when the instruction is there.

import * as vscode from "vscode";

export type Part = "selection" | "file";

export interface Target {
    readonly document: vscode.TextDocument;
    /** undefined: the whole document; empty: the smallest definition around it. */
    readonly range: vscode.Range | undefined;
    readonly version: number;
    readonly comment?: number;
}

export function targetOf(editor: vscode.TextEditor, part: Part): Target {
    const { document, selection } = editor;
    const range = part === "file" ? undefined : new vscode.Range(selection.start, selection.end);
    return { document, range, version: document.version };
}

/** The target in the text as it is now; undefined if the text has changed and nobody knows where it is. */
export function settled(target: Target): Target | undefined {
    const { document, range } = target;
    if (document.isClosed) return undefined;
    if (range === undefined || document.version === target.version) return { ...target, version: document.version };
    const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
    return editor && targetOf(editor, "selection");
}

/** What is asked for, in the prompt's words: `lines 4-12 of shapes.py`. */
export function nameOf({ document, range }: Target): string {
    const name = document.uri.path.split("/").pop() || "this document";
    if (range === undefined) return `all of ${name}`;
    if (range.isEmpty) return `the definition at line ${range.start.line + 1} of ${name}`;
    const last = range.end.line + (range.end.character > 0 || range.isSingleLine ? 1 : 0);
    const first = range.start.line + 1;
    return last > first ? `lines ${first}-${last} of ${name}` : `line ${first} of ${name}`;
}
