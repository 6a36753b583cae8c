// Brings the server's edits into the editor: on the version they were made for and no other, in one undo step where
// that is possible, and with an answer that is true.

import * as vscode from "vscode";
import type {
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    HandlerResult,
    LanguageClient,
} from "vscode-languageclient/node";
import { isReviewed, planOf, type Plan, type UndoSteps } from "./editPlan";
import { readOnlyReason } from "./readOnly";
import type { Reviews } from "./reviews";
import { UndoChain } from "./undoChain";

const CLOSED = "the document is closed";
const CHANGED = "the text has changed meanwhile";
const LEFT = "the user did not take it"; // the server knows these words

type Next = (
    params: ApplyWorkspaceEditParams,
    token: vscode.CancellationToken,
) => HandlerResult<ApplyWorkspaceEditResult, void>;

/** An edit of ours that is under way, and what became of the document meanwhile. */
interface UnderWay {
    readonly document: vscode.TextDocument;
    readonly version: number;
    /** The text right after the edit, if it was made: nothing else makes the next version of it then. */
    after: string | undefined;
    /** Whether there were changes after that one. */
    isOvertaken: boolean;
}

export class EditApplier implements vscode.Disposable {
    private readonly chain = new UndoChain();
    private readonly following: vscode.Disposable;
    private readonly underWay = new Set<UnderWay>();

    constructor(
        private readonly undo: UndoSteps,
        private readonly reviews: Reviews,
    ) {
        this.following = vscode.Disposable.from(
            vscode.workspace.onDidChangeTextDocument((event) => this.follow(event)),
            vscode.workspace.onDidCloseTextDocument((document) => this.chain.forget(document.uri.toString())),
        );
    }

    dispose(): void {
        this.following.dispose();
    }

    /** The client's `handleApplyEdit`. */
    async apply(client: LanguageClient, params: ApplyWorkspaceEditParams, next: Next) {
        const plan = planOf(params);
        if (plan === undefined) return next(params, new vscode.CancellationTokenSource().token);
        const uri = client.protocol2CodeConverter.asUri(plan.uri);
        const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
        if (document === undefined) return refused(CLOSED);
        const reason = await readOnlyReason(document);
        if (reason !== undefined) return refused(reason);
        // no await between this check and the edit: the text could change there
        if (plan.version !== null && plan.version !== document.version) return refused(CHANGED);
        if (document.isClosed) return refused(CLOSED);
        if (isReviewed(params)) return this.review(document, params, next);
        return (await this.make(document, plan)) ? { applied: true } : refused(whyNot(document, plan));
    }

    private async review(document: vscode.TextDocument, params: ApplyWorkspaceEditParams, next: Next) {
        const show = async (): Promise<boolean> => {
            const result = await next(params, new vscode.CancellationTokenSource().token);
            return "applied" in result && result.applied;
        };
        const choice = await this.reviews.ask(document, show);
        return choice === "taken" ? { applied: true } : refused(choice === "left" ? LEFT : CHANGED);
    }

    private async make(document: vscode.TextDocument, plan: Plan): Promise<boolean> {
        const uri = document.uri.toString();
        const stop = this.undo.needsStop(plan.uri, document.version);
        const before = stop ? document.getText() : "";
        const edit: UnderWay = { document, version: document.version, after: undefined, isOvertaken: false };
        const isChange = plan.edits.some(({ range, newText }) => document.getText(rangeOf(range)) !== newText);
        this.underWay.add(edit);
        const isMade = await made(document, plan, stop).finally(() => this.underWay.delete(edit));
        if (!isMade && edit.after !== undefined) this.chain.changed(uri); // it was somebody else's
        // an editor that is read-only says that it has made what it has not
        if (!isMade || (isChange && edit.after === undefined)) return false;
        this.undo.made(plan.uri, edit.version + 1);
        const after = edit.after ?? document.getText();
        if (stop) this.chain.begin(uri, before, after);
        else this.chain.add(uri, after);
        if (edit.isOvertaken) this.chain.changed(uri);
        return true;
    }

    /** Tell ours from what others do. An undo or a redo that came to between two hunks goes on: the user saw one change. */
    private follow({ document, reason, contentChanges }: vscode.TextDocumentChangeEvent): void {
        if (!contentChanges.length) return; // it was saved, say
        const uri = document.uri.toString();
        const edit = [...this.underWay].find((one) => one.document === document);
        if (reason !== undefined) {
            if (edit?.after !== undefined) edit.isOvertaken = true;
            const direction = reason === vscode.TextDocumentChangeReason.Undo ? "undo" : "redo";
            const isBetween = this.chain.moved(uri, direction, document.getText());
            const isSeen = vscode.window.activeTextEditor?.document === document;
            if (isBetween && isSeen) void vscode.commands.executeCommand(direction);
            return;
        }
        if (edit === undefined) this.chain.changed(uri);
        else if (document.version === edit.version + 1) edit.after = document.getText();
        else edit.isOvertaken = true;
    }
}

/** Whether VS Code made the edit. An editor that was closed meanwhile makes none, and the document is changed without. */
async function made(document: vscode.TextDocument, plan: Plan, stop: boolean): Promise<boolean> {
    const { version } = document;
    const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
    if (editor !== undefined) {
        try {
            return await edited(editor, plan, stop);
        } catch {
            if (document.isClosed || document.version !== version) return false;
        }
    }
    return vscode.workspace.applyEdit(workspaceEdit(document, plan));
}

function edited(editor: vscode.TextEditor, plan: Plan, stop: boolean): Thenable<boolean> {
    return editor.edit(
        (builder) => {
            for (const edit of plan.edits) builder.replace(rangeOf(edit.range), edit.newText);
        },
        { undoStopBefore: stop, undoStopAfter: false },
    );
}

function workspaceEdit(document: vscode.TextDocument, plan: Plan): vscode.WorkspaceEdit {
    const edit = new vscode.WorkspaceEdit();
    for (const one of plan.edits) edit.replace(document.uri, rangeOf(one.range), one.newText);
    return edit;
}

function rangeOf(range: Plan["edits"][number]["range"]): vscode.Range {
    return new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
}

/** Why an edit was not made, of which VS Code says no more than that. */
function whyNot(document: vscode.TextDocument, { version }: Plan): string {
    if (document.isClosed) return CLOSED;
    return version === null || version === document.version ? "VS Code did not make it; the editor may be read-only" : CHANGED;
}

function refused(failureReason: string): ApplyWorkspaceEditResult {
    return { applied: false, failureReason };
}
