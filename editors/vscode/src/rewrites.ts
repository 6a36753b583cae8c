// Runs rewrites: asks the server, follows them to their one outcome, cancels them, takes them back.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient, ResponseError } from "vscode-languageclient/node";
import type { UndoSteps } from "./editPlan";
import type { HunkView } from "./hunkView";
import { type Shown, shownOf, shownOfRevert } from "./outcomes";
import type { Job, Running } from "./progress";
import {
    type HunkParams,
    METHODS,
    REQUEST_CANCELLED,
    type RegionParams,
    type RevertResult,
    type RewriteParams,
    type RewriteResult,
} from "./protocol";
import { readOnlyReason } from "./readOnly";
import type { Server } from "./server";
import type { StatusItem } from "./status";
import { settled, type Target } from "./target";

const CANCEL_PATIENCE_MS = 1500; // then the request itself is cancelled, whatever the server says

export class Rewrites {
    private readonly cancels = new Map<Job, vscode.CancellationTokenSource>();

    constructor(
        private readonly server: Server,
        private readonly running: Running,
        private readonly undo: UndoSteps,
        private readonly view: HunkView,
        private readonly status: StatusItem,
        private readonly log: vscode.LogOutputChannel,
    ) {}

    /** Hear what the server tells of regions and hunks. */
    listen(client: LanguageClient): void {
        client.onNotification(METHODS.region, (region: RegionParams) => {
            this.running.name(region.job, region.uri);
            this.view.showRegion(client.protocol2CodeConverter.asUri(region.uri), region);
            this.log.debug(`job ${region.job}: ${region.label}`);
        });
        client.onNotification(METHODS.hunk, (hunk: HunkParams) => {
            const job = this.running.called(hunk.job);
            if (job !== undefined) job.hunks += hunk.removed ? -1 : 1;
            this.view.hunk(client.protocol2CodeConverter.asUri(hunk.uri), hunk);
        });
    }

    /** Let the model read what comes before the instruction, while the user still writes it. */
    async prepare(target: Target): Promise<void> {
        const client = await this.server.ready();
        if (client === undefined) return;
        const params = { uri: uriOf(client, target), version: target.document.version, ...rangeOf(client, target) };
        await client
            .sendRequest(METHODS.prepare, params)
            .catch((error: unknown) => this.log.debug(`prepare: ${messageOf(error)}`));
    }

    /** Rewrite; it never throws, and the user sees how it ended. */
    async run(asked: Target, instruction: string): Promise<void> {
        const reason = await readOnlyReason(asked.document);
        if (reason !== undefined) return this.show(failure(`${reason}; nothing was changed.`));
        const client = await this.server.ready();
        if (client === undefined) return; // the user was told
        const target = settled(asked);
        if (target === undefined) return this.show(failure("the text has changed since you asked; select it again."));
        const uri = uriOf(client, target);
        const params: RewriteParams = { uri, instruction, version: target.version, ...rangeOf(client, target) };
        if (target.comment !== undefined) params.comment = target.comment;
        this.undo.begin(uri);
        this.view.begin(target.document.uri);
        const job = this.running.begin(uri, instruction);
        const source = new vscode.CancellationTokenSource();
        this.cancels.set(job, source);
        try {
            this.show(shownOf(await client.sendRequest<RewriteResult>(METHODS.rewrite, params, source.token)));
        } catch (error) {
            this.show(this.endedBy(error, job));
        } finally {
            this.cancels.delete(job);
            source.dispose();
            this.view.end(target.document.uri);
            this.running.end(job);
        }
    }

    /** Cancel the rewrites of a document, or all; what is in the text stays. */
    async cancel(document?: vscode.TextDocument): Promise<void> {
        const client = this.server.running;
        if (client === undefined) return;
        const here = document && client.code2ProtocolConverter.asUri(document.uri);
        const ofHere = here === undefined ? [] : this.running.of(here);
        const jobs = ofHere.length ? ofHere : this.running.of(undefined);
        for (const job of jobs) {
            job.isCancelled = true;
            const by = job.name === undefined ? { uri: job.uri } : { job: job.name };
            const source = this.cancels.get(job);
            setTimeout(() => source?.cancel(), CANCEL_PATIENCE_MS);
            await client
                .sendRequest(ExecuteCommandRequest.type, { command: "specd.cancel", arguments: [by] })
                .catch(() => source?.cancel());
        }
    }

    /** Take back the hunks of the latest rewrite in a document. */
    async revert(document: vscode.TextDocument | undefined): Promise<void> {
        const client = await this.server.ready();
        if (client === undefined) return;
        const uri = document && client.code2ProtocolConverter.asUri(document.uri);
        if (uri !== undefined) this.undo.begin(uri);
        try {
            const result = await client.sendRequest<RevertResult>(METHODS.revert, uri === undefined ? {} : { uri });
            this.show(shownOfRevert(result));
        } catch (error) {
            this.show(failure(messageOf(error)));
        }
    }

    /** A code action for a hunk that was not applied: the server puts it in, or drops it. */
    async settle(argument: unknown): Promise<void> {
        const client = await this.server.ready();
        await client
            ?.sendRequest(ExecuteCommandRequest.type, { command: "specd.conflict", arguments: [argument] })
            .catch((error: unknown) => this.show(failure(messageOf(error))));
    }

    private endedBy(error: unknown, job: Job): Shown {
        if (error instanceof ResponseError && error.code === REQUEST_CANCELLED) {
            const kept = `cancelled; ${job.hunks} ${job.hunks === 1 ? "hunk stays" : "hunks stay"}`;
            const told = /^cancelled/.test(error.message) ? error.message : kept;
            return { level: "status", text: `specd: ${told}`, canRevert: false };
        }
        return failure(messageOf(error));
    }

    private show({ level, text, canRevert }: Shown): void {
        this.log.debug(text);
        this.status.tell(text.length > 120 ? `${text.slice(0, 119)}…` : text, level === "status");
        if (level === "status") return;
        const buttons = [...(canRevert ? ["Revert"] : []), "Show Log"];
        const say = { info: vscode.window.showInformationMessage, warning: vscode.window.showWarningMessage };
        const shown = level === "error" ? vscode.window.showErrorMessage : say[level];
        void shown(text, ...buttons).then((chosen) => {
            if (chosen === "Revert") void vscode.commands.executeCommand("specd.revert");
            if (chosen === "Show Log") this.log.show();
        });
    }
}

function failure(message: string): Shown {
    return { level: "error", text: `specd: ${message}`, canRevert: false };
}

function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error);
}

function uriOf(client: LanguageClient, target: Target): string {
    return client.code2ProtocolConverter.asUri(target.document.uri);
}

function rangeOf(client: LanguageClient, { range }: Target): Pick<RewriteParams, "range"> {
    return range === undefined ? {} : { range: client.code2ProtocolConverter.asRange(range) };
}
