// Shows what is being rewritten and what was: the region while it works, the hunks until they are edited or dismissed.

import * as vscode from "vscode";
import { changesOf } from "./changes";
import { tellContext } from "./context";
import { registerHovers } from "./hunkHover";
import { isDeletion, type Lines, type Mark, Marks } from "./marks";
import { Paced } from "./paced";
import type { HunkParams, RegionParams } from "./protocol";

const DRAWN_MS = 100; // between two drawings: a rewrite may have hundreds of hunks, and an edit's answer comes first

export class HunkView implements vscode.Disposable {
    private readonly documents = new Map<string, Marks>();
    private readonly latest = new Map<string, string>(); // document to its latest job
    private readonly decorated = new WeakSet<vscode.TextEditor>();
    private readonly drawing = new Paced(DRAWN_MS, () => this.draw());
    private readonly subscriptions: vscode.Disposable[] = [];
    private readonly region = vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor("editor.rangeHighlightBackground"),
        borderColor: new vscode.ThemeColor("editor.rangeHighlightBorder"), // high contrast themes have that in its place
        borderStyle: "solid",
        borderWidth: "0 2px",
        rangeBehavior: vscode.DecorationRangeBehavior.OpenOpen,
    });
    private readonly changed = lineDecoration("0 0 0 3px", "editorGutter.modifiedBackground", "diffEditor.insertedLineBackground");
    private readonly deleted = lineDecoration("2px 0 0 0", "editorGutter.deletedBackground");
    private readonly deletedAtEnd = lineDecoration("0 0 2px 0", "editorGutter.deletedBackground");

    constructor(private readonly isShown: () => boolean) {
        this.subscriptions.push(
            vscode.workspace.onDidChangeTextDocument((event) => this.change(event)),
            vscode.workspace.onDidCloseTextDocument((document) => this.forget(document.uri)),
            vscode.window.onDidChangeVisibleTextEditors(() => this.drawing.now()),
            vscode.window.onDidChangeActiveTextEditor(() => this.updateContext()),
            registerHovers((document, line) => (this.isShown() ? this.marksOf(document)?.at(line, document.lineCount - 1) : undefined)),
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

    /** Show what is known now, soon. */
    update(): void {
        this.drawing.call();
    }

    /** Decorate what is visible: an editor that was hidden has lost its decorations. */
    private draw(): void {
        for (const editor of vscode.window.visibleTextEditors) {
            const known = this.marksOf(editor.document);
            if (known === undefined && !this.decorated.has(editor)) continue;
            this.decorated.add(editor);
            this.decorate(editor, known?.regions ?? [], this.isShown() ? (known?.all ?? []) : []);
        }
        this.updateContext();
    }

    private decorate(editor: vscode.TextEditor, regions: readonly Lines[], marks: readonly Mark[]): void {
        const { document } = editor;
        const isBehindLast = (mark: Mark): boolean => isDeletion(mark) && mark.start >= document.lineCount;
        // places only, for which VS Code has a fast way
        const draw = (type: vscode.TextEditorDecorationType, places: readonly Lines[]): void =>
            editor.setDecorations(type, places.map((lines) => rangeOfLines(lines, document)));
        draw(this.region, regions);
        draw(this.changed, marks.filter((mark) => !isDeletion(mark)));
        draw(this.deleted, marks.filter((mark) => isDeletion(mark) && !isBehindLast(mark)));
        draw(this.deletedAtEnd, marks.filter(isBehindLast));
    }

    dispose(): void {
        this.drawing.drop();
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
        tellContext("hasHunks", has);
    }
}

/** Whole lines in a document that may have become shorter; of none, the one that they stand before. */
export function rangeOfLines({ start, end }: Lines, document: vscode.TextDocument): vscode.Range {
    return document.validateRange(new vscode.Range(start, 0, Math.max(start, end - 1), 0));
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
