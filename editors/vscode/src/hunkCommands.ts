// Going from hunk to hunk, and taking one back.

import * as vscode from "vscode";
import { type HunkView, rangeOfLines } from "./hunkView";
import type { Mark, Marks } from "./marks";
import { readOnlyReason } from "./readOnly";

/** What the links of a hunk's hover carry: the editor that it is in may not be the active one. */
export interface NamedHunk {
    uri: string;
    job: string;
    number: number;
}

export function goToHunk(view: HunkView, direction: 1 | -1, named: unknown): void {
    const editor = editorOf(named);
    const mark = editor && view.marksOf(editor.document)?.beside(editor.selection.active.line, direction, lastLine(editor));
    if (editor === undefined || mark === undefined) {
        void vscode.window.setStatusBarMessage("specd: no hunks are marked here", 4000);
        return;
    }
    const range = rangeOfLines(mark, editor.document);
    editor.selection = new vscode.Selection(range.start, range.start);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

/** Bring the old lines of a hunk back: of the one that is named, or of the one that the cursor is in. */
export async function revertHunk(view: HunkView, named: unknown): Promise<void> {
    const editor = editorOf(named);
    const marks = editor && view.marksOf(editor.document);
    const mark = marks && markOf(editor, marks, named);
    if (editor === undefined || marks === undefined || mark === undefined) {
        void vscode.window.showInformationMessage("specd: the cursor is in no hunk of a rewrite; go to one with Next Hunk first.");
        return;
    }
    const { document } = editor;
    const reason = await readOnlyReason(document);
    if (reason !== undefined) return void vscode.window.showErrorMessage(`specd: ${reason}; nothing was changed.`);
    const { version } = document;
    const now = marks.all.find((one) => one.job === mark.job && one.number === mark.number); // it may have moved meanwhile
    if (now !== undefined && (await isRestored(editor, now))) {
        marks.remove(mark.job, mark.number);
        view.update();
        return;
    }
    const isRefused = now !== undefined && document.version === version && !document.isClosed;
    const why = isRefused ? "VS Code did not change it; the editor may be read-only." : "the text changed just now; try again.";
    void vscode.window.showWarningMessage(`specd: ${why}`);
}

/** Take the marks away, and no hunk. */
export function dismissHunks(view: HunkView, named: unknown): void {
    const editor = editorOf(named);
    if (editor !== undefined) view.dismiss(editor.document);
}

/** The editor of the hunk that is named, or else the active one. */
function editorOf(named: unknown): vscode.TextEditor | undefined {
    const active = vscode.window.activeTextEditor;
    const uri = (named as Partial<NamedHunk> | undefined)?.uri;
    const isOf = (editor: vscode.TextEditor | undefined): boolean => editor?.document.uri.toString() === uri;
    return uri === undefined || isOf(active) ? active : vscode.window.visibleTextEditors.find(isOf);
}

function markOf(editor: vscode.TextEditor, marks: Marks, named: unknown): Mark | undefined {
    const wanted = named as Partial<NamedHunk> | undefined;
    if (wanted?.job === undefined) return marks.at(editor.selection.active.line, lastLine(editor));
    return marks.all.find((one) => one.job === wanted.job && one.number === wanted.number);
}

function lastLine({ document }: vscode.TextEditor): number {
    return document.lineCount - 1;
}

async function isRestored(editor: vscode.TextEditor, mark: Mark): Promise<boolean> {
    const { range, text } = restored(editor.document, mark);
    const { version } = editor.document;
    try {
        const made = await editor.edit((builder) => builder.replace(range, text), { undoStopBefore: true, undoStopAfter: true });
        return made && editor.document.version > version; // an editor that is read-only says that it has made it too
    } catch {
        return false; // it was closed
    }
}

/** What to replace for a hunk's old lines; the end of the text may lack a line end. */
function restored(document: vscode.TextDocument, mark: Mark): { range: vscode.Range; text: string } {
    const range = document.validateRange(new vscode.Range(mark.start, 0, mark.end, 0));
    const isBehindLast = mark.start >= document.lineCount && range.start.character > 0;
    return { range, text: isBehindLast ? `\n${mark.oldText}` : mark.oldText };
}
