// The commands that start a rewrite: by a prompt, by the last instruction, and by the server's code actions.

import * as vscode from "vscode";
import { ask, type Suggestion } from "./ask";
import { readHistory, remember } from "./history";
import { askForLines } from "./moreLines";
import { offersFor } from "./offers";
import { type ActionArgument, isActionArgument } from "./protocol";
import type { Rewrites } from "./rewrites";
import type { Server } from "./server";
import type { Settings } from "./settings";
import { isRewritable, type Part, Target, targetOf } from "./target";

const HISTORY = "specd.history";
const PREPARE_MS = 200; // that the text has not changed for

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

    byPrompt(part: Part): Promise<void> {
        return this.withTarget(part, async (target) => {
            const suggestion = await this.suggestion(target);
            if (suggestion !== undefined) await this.run(target, suggestion);
        });
    }

    /** `specd.again`: what was asked last, here. */
    async again(): Promise<void> {
        const last = this.history()[0];
        if (last === undefined) return this.byPrompt("selection");
        await this.withTarget("selection", (target) => this.run(target, { label: last, instruction: last }));
    }

    get hasHistory(): boolean {
        return this.history().length > 0;
    }

    async clearHistory(): Promise<void> {
        await this.kept.update(HISTORY, []);
        void vscode.window.showInformationMessage("specd: the instructions you asked before are forgotten.");
    }

    /** The settings have changed: keep no more instructions than they say. */
    async trimHistory(): Promise<void> {
        const kept = this.history();
        if (kept.length < this.kept.get<unknown[]>(HISTORY, []).length) await this.kept.update(HISTORY, kept);
    }

    private async fromAction({ uri, range, version, instruction, comment }: ActionArgument): Promise<void> {
        const client = await this.server.awaited();
        if (client === undefined) return;
        const named = client.protocol2CodeConverter.asUri(uri).toString();
        const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === named);
        if (document === undefined) return this.rewrites.fail("the document that this was offered for is closed.");
        const offer = { range: client.protocol2CodeConverter.asRange(range), comment, version: version ?? document.version };
        await this.run(new Target(document, undefined), { label: instruction, instruction, offer });
    }

    /** Ask the user; meanwhile the model reads the text, and reads it again when it has changed. */
    private async suggestion(target: Target): Promise<Suggestion | undefined> {
        void this.rewrites.prepare(target);
        const reading = new Rested(PREPARE_MS, () => void this.rewrites.prepare(target));
        target.onChange = () => reading.call();
        try {
            const asked = await ask(target.name, this.history(), offersFor(this.server, target));
            if (asked?.kind !== "moreLines") return asked?.suggestion;
            const lines = await askForLines(target.name, asked.text);
            return lines === undefined ? undefined : { label: lines, instruction: lines.trim() };
        } finally {
            target.onChange = () => undefined;
            reading.drop();
        }
    }

    /** Do what is suggested: at the target, or where the server has offered it. */
    private async run(asked: Target, { instruction, offer }: Suggestion): Promise<void> {
        if (offer !== undefined && offer.version !== asked.document.version) {
            asked.dispose();
            return this.rewrites.fail("the text has changed since this was offered; ask again.");
        }
        // no await before the target is made: it follows the text from then on
        const target = offer === undefined ? asked : new Target(asked.document, offer.range ?? asked.range, offer.comment);
        try {
            if (offer?.comment === undefined) void this.remember(instruction);
            await this.rewrites.run(target, instruction);
        } finally {
            asked.dispose();
            target.dispose();
        }
    }

    private async remember(instruction: string): Promise<void> {
        await this.kept.update(HISTORY, remember(this.history(), instruction, this.settings().historySize));
    }

    /** Do something with what the user points at; it is followed until that is through. */
    private async withTarget(part: Part, work: (target: Target) => Promise<void>): Promise<void> {
        const editor = vscode.window.activeTextEditor ?? onlyTextEditor();
        if (editor === undefined || !isRewritable(editor.document)) {
            const isCell = editor?.document.uri.scheme === "vscode-notebook-cell" || vscode.window.activeNotebookEditor !== undefined;
            const text = isCell
                ? "specd: cells of notebooks cannot be rewritten; open what you want changed as a text file."
                : "specd: open a file and put the cursor where you want the change.";
            return void vscode.window.showInformationMessage(text);
        }
        const target = targetOf(editor, part);
        try {
            const reason = await this.rewrites.refusal(editor.document);
            if (reason === undefined) await work(target);
            else this.rewrites.fail(reason);
        } finally {
            target.dispose();
        }
    }

    private history(): string[] {
        return readHistory(this.kept.get(HISTORY), this.settings().historySize);
    }
}

/** The text that is seen while no text has the keyboard, as beside the walkthrough; undefined if there are several. */
function onlyTextEditor(): vscode.TextEditor | undefined {
    const [editor, ...others] = vscode.window.visibleTextEditors.filter((one) => one.document.uri.scheme !== "output");
    return others.length ? undefined : editor;
}

/** Calls `work` once `ms` have passed since the last `call`. */
class Rested {
    private timer: NodeJS.Timeout | undefined;

    constructor(
        private readonly ms: number,
        private readonly work: () => void,
    ) {}

    call(): void {
        this.drop();
        this.timer = setTimeout(this.work, this.ms);
    }

    drop(): void {
        clearTimeout(this.timer);
    }
}
