// Going from hunk to hunk, and taking one back.

import * as vscode from "vscode";
import { type HunkView, rangeOfLines } from "./hunkView";
import type { Mark } from "./marks";

export function goToHunk(view: HunkView, direction: 1 | -1): void {
    const editor = vscode.window.activeTextEditor;
    const mark = editor && view.marksOf(editor.document)?.beside(editor.selection.active.line, direction);
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
    const editor = vscode.window.activeTextEditor;
    const marks = editor && view.marksOf(editor.document);
    const wanted = named as Partial<Mark> | undefined;
    const mark =
        wanted?.job === undefined
            ? marks?.at(editor?.selection.active.line ?? -1)
            : marks?.all.find((one) => one.job === wanted.job && one.number === wanted.number);
    if (editor === undefined || marks === undefined || mark === undefined) {
        void vscode.window.showInformationMessage("specd: the cursor is in no hunk of a rewrite; go to one with Next Hunk first.");
        return;
    }
    const { range, text } = restored(editor.document, mark);
    const made = await editor.edit((builder) => builder.replace(range, text), { undoStopBefore: true, undoStopAfter: true });
    if (made) {
        marks.remove(mark.job, mark.number);
        view.update();
    } else {
        void vscode.window.showWarningMessage("specd: the text changed just now; try again.");
    }
}

/** What to replace for a hunk's old lines; the end of the text may lack a line end. */
function restored(document: vscode.TextDocument, mark: Mark): { range: vscode.Range; text: string } {
    const range = document.validateRange(new vscode.Range(mark.start, 0, mark.end, 0));
    const isBehindLast = mark.start >= document.lineCount && range.start.character > 0;
    return { range, text: isBehindLast ? `\n${mark.oldText}` : mark.oldText };
}
