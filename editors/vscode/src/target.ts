// What is to be rewritten: fixed when the user asks for it, and followed through the text's changes until it is sent.

import * as vscode from "vscode";
import { changesOf } from "./changes";
import { type Lines, movedRegion } from "./marks";

export type Part = "selection" | "file";

export class Target implements vscode.Disposable {
    /** Called after each change of the text. */
    onChange: () => void = () => {};
    private lines: Lines | undefined; // undefined: the whole document
    private commentLine: Lines | undefined;
    private readonly isDefinition: boolean;
    private readonly following: vscode.Disposable;

    /** range: undefined for the whole document, empty for the smallest definition around it. comment: a line. */
    constructor(readonly document: vscode.TextDocument, range: vscode.Range | undefined, comment?: number) {
        this.lines = range && linesOf(range);
        this.isDefinition = range?.isEmpty ?? false;
        this.commentLine = comment === undefined ? undefined : { start: comment, end: comment + 1 };
        this.following = vscode.workspace.onDidChangeTextDocument((event) => {
            if (event.document !== document || !event.contentChanges.length) return;
            for (const change of changesOf(event)) {
                this.lines &&= movedRegion(this.lines, change);
                this.commentLine &&= movedRegion(this.commentLine, change);
            }
            this.onChange();
        });
    }

    /** Whole lines in the text as it is now, empty for a definition; undefined for the whole document. */
    get range(): vscode.Range | undefined {
        const { lines } = this;
        return lines && new vscode.Range(lines.start, 0, this.isDefinition ? lines.start : lines.end, 0);
    }

    /** The line of a comment that asks for this, if it is still there. */
    get comment(): number | undefined {
        const line = this.commentLine;
        return line && line.end > line.start ? line.start : undefined;
    }

    /** Why it is no more, for the user; undefined while it is there. */
    get loss(): string | undefined {
        if (this.document.isClosed) return "the document was closed";
        const isGone = this.lines !== undefined && this.lines.end <= this.lines.start;
        return isGone ? "the lines that you asked for are gone" : undefined;
    }

    /** In the prompt's words: `lines 4-12 of shapes.py`. */
    get name(): string {
        const name = this.document.uri.path.split("/").pop() || "this document";
        if (this.lines === undefined) return `all of ${name}`;
        const { start, end } = this.lines;
        if (this.isDefinition) return `the definition at line ${start + 1} of ${name}`;
        return end - start > 1 ? `lines ${start + 1}-${end} of ${name}` : `line ${start + 1} of ${name}`;
    }

    /** Follow the text no longer. */
    dispose(): void {
        this.following.dispose();
    }
}

/** Whether it is a text of the kind that the server knows. */
export function isRewritable({ uri }: vscode.TextDocument): boolean {
    return uri.scheme === "file" || uri.scheme === "untitled";
}

export function targetOf({ document, selection }: vscode.TextEditor, part: Part): Target {
    return new Target(document, part === "file" ? undefined : selection);
}

/** The lines that a range has something of; a selection that ends at a line's beginning has nothing of that line. */
function linesOf({ start, end, isSingleLine }: vscode.Range): Lines {
    return { start: start.line, end: end.character > 0 || isSingleLine ? end.line + 1 : end.line };
}
