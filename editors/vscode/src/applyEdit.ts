// Brings the server's edits into the editor: on the version they were made for and no other, in one undo step where
// that is possible, and with an answer that is true.

import * as vscode from "vscode";
import type {
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    HandlerResult,
    LanguageClient,
} from "vscode-languageclient/node";
import { planOf, type Plan, type UndoSteps } from "./editPlan";
import { readOnlyReason } from "./readOnly";
import { UndoChain } from "./undoChain";

type Next = (
    params: ApplyWorkspaceEditParams,
    token: vscode.CancellationToken,
) => HandlerResult<ApplyWorkspaceEditResult, void>;

export class EditApplier implements vscode.Disposable {
    private readonly chain = new UndoChain();
    private readonly following: vscode.Disposable;

    constructor(private readonly undo: UndoSteps) {
        this.following = vscode.Disposable.from(
            vscode.workspace.onDidChangeTextDocument((event) => this.goOn(event)),
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
        if (document === undefined) return refused("the document is closed");
        const reason = await readOnlyReason(document);
        if (reason !== undefined) return refused(reason);
        // no await between this check and the edit: the text could change there
        if (plan.version !== null && plan.version !== document.version) return refused("the text has changed meanwhile");
        return (await this.make(document, plan)) ? { applied: true } : refused("the text has changed meanwhile");
    }

    private async make(document: vscode.TextDocument, plan: Plan): Promise<boolean> {
        const stop = this.undo.needsStop(plan.uri, document.version);
        const before = document.version;
        if (stop) this.chain.begin(document.uri.toString(), document.getText());
        const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
        const made = await (editor ? edited(editor, plan, stop) : vscode.workspace.applyEdit(workspaceEdit(document, plan)));
        if (made) this.undo.made(plan.uri, before + 1);
        if (made && document.version === before + 1) this.chain.add(document.uri.toString(), document.getText());
        return made;
    }

    /** An undo or a redo that came to a text between two hunks goes on: the user has seen one change. */
    private goOn({ document, reason }: vscode.TextDocumentChangeEvent): void {
        if (reason === undefined || vscode.window.activeTextEditor?.document !== document) return;
        if (!this.chain.isWithin(document.uri.toString(), document.getText())) return;
        const command = reason === vscode.TextDocumentChangeReason.Undo ? "undo" : "redo";
        void vscode.commands.executeCommand(command);
    }
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

function refused(failureReason: string): ApplyWorkspaceEditResult {
    return { applied: false, failureReason };
}
