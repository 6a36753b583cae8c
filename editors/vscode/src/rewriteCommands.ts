// The commands that start a rewrite: by a prompt, by the last instruction, and by the server's code actions.

import * as vscode from "vscode";
import { ask, type Suggestion } from "./ask";
import { readHistory, remember } from "./history";
import { askForLines } from "./moreLines";
import { offersFor } from "./offers";
import { type ActionArgument, isActionArgument } from "./protocol";
import { readOnlyReason } from "./readOnly";
import type { Rewrites } from "./rewrites";
import type { Server } from "./server";
import type { Settings } from "./settings";
import { nameOf, type Part, type Target, targetOf } from "./target";

const HISTORY = "specd.history";

export class RewriteCommands {
    constructor(
        private readonly server: Server,
        private readonly rewrites: Rewrites,
        private readonly kept: vscode.Memento,
        private readonly settings: () => Settings,
    ) {}

    /** `specd.rewrite`: with the instruction of a code action at once, else by a prompt. */
    async rewrite(argument: unknown): Promise<void> {
        if (isActionArgument(argument) && argument.instruction) await this.fromAction(argument);
        else await this.byPrompt("selection");
    }

    async byPrompt(part: Part): Promise<void> {
        const target = await this.target(part);
        if (target === undefined) return;
        void this.rewrites.prepare(target);
        const where = nameOf(target);
        const asked = await ask(where, this.history(), offersFor(this.server, target));
        if (asked === undefined) return;
        if (asked.kind === "run") return this.run(target, asked.suggestion);
        const lines = await askForLines(where, asked.text);
        if (lines !== undefined) await this.run(target, { label: lines, instruction: lines.trim() });
    }

    /** `specd.again`: what was asked last, here. */
    async again(): Promise<void> {
        const [last] = this.history();
        if (last === undefined) return this.byPrompt("selection");
        const target = await this.target("selection");
        if (target !== undefined) await this.run(target, { label: last, instruction: last });
    }

    async clearHistory(): Promise<void> {
        await this.kept.update(HISTORY, []);
        void vscode.window.showInformationMessage("specd: the instructions you asked before are forgotten.");
    }

    private async fromAction(argument: ActionArgument): Promise<void> {
        const client = await this.server.ready();
        if (client === undefined) return;
        const uri = client.protocol2CodeConverter.asUri(argument.uri);
        const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
        if (document === undefined) return;
        const range = client.protocol2CodeConverter.asRange(argument.range);
        const { instruction, comment } = argument;
        const target: Target = { document, range, version: document.version };
        await this.run(target, { label: instruction, instruction, ...(comment === undefined ? {} : { comment }) });
    }

    private async run(target: Target, { instruction, comment, range }: Suggestion): Promise<void> {
        if (comment === undefined) {
            await this.kept.update(HISTORY, remember(this.history(), instruction, this.settings().historySize));
        }
        const extra = { ...(comment === undefined ? {} : { comment }), ...(range === undefined ? {} : { range }) };
        await this.rewrites.run({ ...target, ...extra }, instruction);
    }

    private async target(part: Part): Promise<Target | undefined> {
        const editor = vscode.window.activeTextEditor;
        const say = vscode.window.showInformationMessage;
        if (editor === undefined || !["file", "untitled"].includes(editor.document.uri.scheme)) {
            void say("specd: open a file and put the cursor where you want the change.");
            return undefined;
        }
        const reason = await readOnlyReason(editor.document);
        if (reason !== undefined) {
            void vscode.window.showErrorMessage(`specd: ${reason}; nothing was changed.`);
            return undefined;
        }
        return targetOf(editor, part);
    }

    private history(): string[] {
        return readHistory(this.kept.get(HISTORY), this.settings().historySize);
    }
}
