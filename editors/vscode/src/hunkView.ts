// Shows what is being rewritten and what was: the region while it works, the hunks until they are edited or dismissed.

import * as vscode from "vscode";
import { changesOf } from "./changes";
import type { NamedHunk } from "./hunkCommands";
import { isDeletion, type Lines, type Mark, Marks } from "./marks";
import type { HunkParams, RegionParams } from "./protocol";

export class HunkView implements vscode.Disposable {
    private readonly documents = new Map<string, Marks>();
    private readonly latest = new Map<string, string>(); // document to its latest job
    private readonly subscriptions: vscode.Disposable[] = [];
    private readonly region = vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor("editor.rangeHighlightBackground"),
        rangeBehavior: vscode.DecorationRangeBehavior.OpenOpen,
    });
    private readonly changed = lineDecoration("0 0 0 3px", "editorGutter.modifiedBackground", "diffEditor.insertedLineBackground");
    private readonly deleted = lineDecoration("2px 0 0 0", "editorGutter.deletedBackground");
    private readonly deletedAtEnd = lineDecoration("0 0 2px 0", "editorGutter.deletedBackground");

    constructor(private readonly isShown: () => boolean) {
        this.subscriptions.push(
            vscode.workspace.onDidChangeTextDocument((event) => this.change(event)),
            vscode.workspace.onDidCloseTextDocument((document) => this.forget(document.uri)),
            vscode.window.onDidChangeVisibleTextEditors(() => this.update()),
            vscode.window.onDidChangeActiveTextEditor(() => this.updateContext()),
            this.region,
            this.changed,
            this.deleted,
            this.deletedAtEnd,
        );
    }

    marksOf(document: vscode.TextDocument): Marks | undefined {
        return this.documents.get(document.uri.toString());
    }

    /** A rewrite begins: what is marked here is of an older one. */
    begin(uri: vscode.Uri): void {
        const marks = this.documents.get(uri.toString());
        if (marks === undefined) this.documents.set(uri.toString(), new Marks());
        else marks.clear();
        this.update();
    }

    showRegion(uri: vscode.Uri, { job, version, startLine: start, endLine: end }: RegionParams): void {
        this.latest.set(uri.toString(), job);
        this.documents.get(uri.toString())?.begin(job, { start, end }, version);
        this.update();
    }

    /** The job is over; one that never had a name had no region either. */
    end(uri: vscode.Uri, job: string | undefined): void {
        if (job !== undefined) this.documents.get(uri.toString())?.end(job);
        this.update();
    }

    hunk(uri: vscode.Uri, hunk: HunkParams): void {
        const marks = this.documents.get(uri.toString());
        // an older job's hunks may come and go with the latest one's, which did the same to the same lines
        if (marks === undefined || this.latest.get(uri.toString()) !== hunk.job) return;
        const { job, number, startLine: start, endLine: end, oldText } = hunk;
        if (hunk.removed) marks.remove(job, number);
        else marks.add({ job, number, start, end, oldText }, hunk.version);
        this.update();
    }

    dismiss(document: vscode.TextDocument): void {
        this.marksOf(document)?.clear();
        this.update();
    }

    /** Decorate what is visible: an editor that was hidden has lost its decorations. */
    update(): void {
        for (const editor of vscode.window.visibleTextEditors) {
            const { document } = editor;
            const known = this.marksOf(document);
            editor.setDecorations(this.region, (known?.regions ?? []).map((lines) => rangeOfLines(lines, document)));
            const marks = this.isShown() ? (known?.all ?? []) : [];
            const isBehindLast = (mark: Mark): boolean => isDeletion(mark) && mark.start >= document.lineCount;
            const decorate = (type: vscode.TextEditorDecorationType, holds: (mark: Mark) => boolean): void =>
                editor.setDecorations(type, decorations(marks.filter(holds), document));
            decorate(this.changed, (mark) => !isDeletion(mark));
            decorate(this.deleted, (mark) => isDeletion(mark) && !isBehindLast(mark));
            decorate(this.deletedAtEnd, isBehindLast);
        }
        this.updateContext();
    }

    dispose(): void {
        for (const one of this.subscriptions) one.dispose();
    }

    private forget(uri: vscode.Uri): void {
        this.documents.delete(uri.toString());
        this.latest.delete(uri.toString());
    }

    private change(event: vscode.TextDocumentChangeEvent): void {
        const marks = this.marksOf(event.document);
        if (marks === undefined || event.contentChanges.length === 0) return;
        const isShown = marks.all.length + marks.regions.length > 0;
        marks.change(event.document.version, changesOf(event));
        if (isShown) this.update();
    }

    private updateContext(): void {
        const document = vscode.window.activeTextEditor?.document;
        const has = document !== undefined && (this.marksOf(document)?.all.length ?? 0) > 0;
        void vscode.commands.executeCommand("setContext", "specd.hasHunks", has);
    }
}

/** Whole lines in a document that may have become shorter; of none, the one that they stand before. */
export function rangeOfLines({ start, end }: Lines, document: vscode.TextDocument): vscode.Range {
    return document.validateRange(new vscode.Range(start, 0, Math.max(start, end - 1), 0));
}

function decorations(marks: readonly Mark[], document: vscode.TextDocument): vscode.DecorationOptions[] {
    return marks.map((mark) => ({ range: rangeOfLines(mark, document), hoverMessage: hoverOf(mark, document) }));
}

function hoverOf({ job, number, oldText }: Mark, { uri, languageId }: vscode.TextDocument): vscode.MarkdownString {
    const named: NamedHunk = { uri: uri.toString(), job, number };
    const argument = encodeURIComponent(JSON.stringify([named]));
    const hover = new vscode.MarkdownString(
        `specd: [Revert](command:specd.revertHunk?${argument} "Bring the old lines back") · ` +
            `[Previous](command:specd.previousHunk?${argument}) · [Next](command:specd.nextHunk?${argument}) · ` +
            `[Dismiss all](command:specd.dismissHunks?${argument})\n\n`,
    );
    hover.isTrusted = {
        enabledCommands: ["specd.revertHunk", "specd.previousHunk", "specd.nextHunk", "specd.dismissHunks"],
    };
    if (oldText) hover.appendCodeblock(oldText.replace(/\r?\n$/, ""), languageId);
    else hover.appendMarkdown("These lines are new.");
    return hover;
}

function lineDecoration(borderWidth: string, color: string, background?: string): vscode.TextEditorDecorationType {
    return vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        borderStyle: "solid",
        borderWidth,
        borderColor: new vscode.ThemeColor(color),
        ...(background === undefined ? {} : { backgroundColor: new vscode.ThemeColor(background) }),
        overviewRulerColor: new vscode.ThemeColor(color),
        overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
}
