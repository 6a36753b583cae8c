// The server's code actions, as the lightbulb shows them: each carries the version of the text that it was made for, so
// that one that is chosen after the text has moved on is not done on other lines. The server remembers what was asked
// last; it is offered again where the user lets instructions be kept.

import type * as vscode from "vscode";
import type { ProvideCodeActionsSignature } from "vscode-languageclient/node";
import { isActionArgument } from "./protocol";

/** Whether an action of this title asks for the last instruction again. */
export function isAgain(title: string): boolean {
    return title.startsWith("Rewrite again:");
}

/** The client's `provideCodeActions`. hasHistory: whether an instruction is kept. */
export async function offeredActions(
    hasHistory: boolean,
    document: vscode.TextDocument,
    range: vscode.Range,
    context: vscode.CodeActionContext,
    token: vscode.CancellationToken,
    next: ProvideCodeActionsSignature,
): Promise<(vscode.Command | vscode.CodeAction)[] | null | undefined> {
    const { version } = document;
    const actions = (await offered(next(document, range, context, token)))?.filter(({ title }) => hasHistory || !isAgain(title));
    for (const action of actions ?? []) {
        const command = typeof action.command === "string" ? (action as vscode.Command) : action.command;
        const argument: unknown = command?.arguments?.[0];
        if (isActionArgument(argument)) argument.version = version;
    }
    return actions;
}

/** Nothing where the server ends before it has answered: nobody has asked for a message of that. */
async function offered<T>(answer: vscode.ProviderResult<T>): Promise<T | null | undefined> {
    try {
        return await answer;
    } catch {
        return null;
    }
}
