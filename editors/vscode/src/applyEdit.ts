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

type Next = (
    params: ApplyWorkspaceEditParams,
    token: vscode.CancellationToken,
) => HandlerResult<ApplyWorkspaceEditResult, void>;

export class EditApplier {
    constructor(private readonly undo: UndoSteps) {}

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
        const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
        if (editor === undefined) return vscode.workspace.applyEdit(workspaceEdit(document, plan));
        const stop = this.undo.needsStop(plan.uri, document.version);
        const before = document.version;
        const made = await editor.edit(
            (builder) => {
                for (const edit of plan.edits) builder.replace(rangeOf(edit.range), edit.newText);
            },
            { undoStopBefore: stop, undoStopAfter: false },
        );
        if (made) this.undo.made(plan.uri, before + 1);
        return made;
    }
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
