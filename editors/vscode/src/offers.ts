// What the server offers for a place, as its code actions: presets, a comment that asks, diagnostics to fix.

import * as vscode from "vscode";
import {
    type CodeAction,
    CodeActionKind,
    CodeActionRequest,
    CodeActionTriggerKind,
    type Command,
    type LanguageClient,
} from "vscode-languageclient/node";
import type { Suggestion } from "./ask";
import { isAgain } from "./codeActions";
import { isActionArgument } from "./protocol";
import type { Server } from "./server";
import type { Target } from "./target";

export async function offersFor(server: Server, { document, range }: Target): Promise<Suggestion[]> {
    const client = await server.ready();
    if (client === undefined) return [];
    const { version } = document;
    const asked = range ?? new vscode.Range(0, 0, document.lineCount, 0);
    const problems = vscode.languages.getDiagnostics(document.uri).filter((one) => one.range.intersection(asked));
    const converter = client.code2ProtocolConverter;
    const found = await client
        .sendRequest(CodeActionRequest.type, {
            textDocument: converter.asTextDocumentIdentifier(document),
            range: converter.asRange(asked),
            context: {
                diagnostics: await converter.asDiagnostics(problems),
                only: ["refactor.rewrite", "quickfix"],
                triggerKind: CodeActionTriggerKind.Invoked,
            },
        })
        .catch(() => null);
    return (found ?? []).flatMap((action) => suggestion(client, action, version));
}

function suggestion(client: LanguageClient, action: CodeAction | Command, version: number): Suggestion[] {
    const command = "command" in action && typeof action.command === "object" ? action.command : undefined;
    const argument: unknown = command?.arguments?.[0];
    if (!isActionArgument(argument) || !argument.instruction || isAgain(action.title)) return [];
    const label = action.title.replace(/^Rewrite( with LLM)?: /, "");
    const isFix = "kind" in action && action.kind === CodeActionKind.QuickFix;
    const range = isFix ? client.protocol2CodeConverter.asRange(argument.range) : undefined;
    const { instruction, comment } = argument;
    return [{ label, instruction, ...(range || comment !== undefined ? { offer: { version, range, comment } } : {}) }];
}
