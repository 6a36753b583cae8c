// Runs rewrites: asks the server, follows them to their one outcome, cancels them, takes them back.

import * as vscode from "vscode";
import { ErrorCodes, ExecuteCommandRequest, type LanguageClient, ResponseError } from "vscode-languageclient/node";
import type { UndoSteps } from "./editPlan";
import type { HunkView } from "./hunkView";
import { type Shown, shownOf, shownOfRevert } from "./outcomes";
import { asMessage } from "./plain";
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
import type { Reviews } from "./reviews";
import type { Server } from "./server";
import type { StatusItem } from "./status";
import type { Target } from "./target";

const NO_CONNECTION: readonly number[] = [ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive];
const BUSY = "a rewrite of this document is under way; Escape in its text ends it.";
const REVIEWED =
    "the hunks of a rewrite of this document wait for your choice in the Refactor Preview; Escape in its text leaves all out.";
const CANCEL_PATIENCE_MS = 1500; // then the request itself is cancelled, whatever the server says
const LAST_PATIENCE_MS = 6000; // an edit that is under way may take four seconds; then the server hangs

export class Rewrites {
    private readonly cancels = new Map<Job, vscode.CancellationTokenSource>();
    private readonly givenUp = new Map<Job, () => void>();

    constructor(
        private readonly server: Server,
        private readonly running: Running,
        private readonly undo: UndoSteps,
        private readonly view: HunkView,
        private readonly reviews: Reviews,
        private readonly status: StatusItem,
        private readonly log: vscode.LogOutputChannel,
    ) {}

    /** Hear what the server tells of regions and hunks. */
    listen(client: LanguageClient): void {
        client.onNotification(METHODS.region, (region: RegionParams) => {
            const uri = client.protocol2CodeConverter.asUri(region.uri);
            this.running.name(region.job, uri.toString());
            this.view.showRegion(uri, region);
            this.log.trace(`job ${region.job}: ${region.label}`);
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
        if (client === undefined || target.loss !== undefined) return;
        await client
            .sendRequest(METHODS.prepare, placeOf(client, target))
            .catch((error: unknown) => this.log.debug(`prepare: ${messageOf(error)}`));
    }

    /** Why this document is not rewritten now, for the user; undefined if it can be. */
    async refusal(document: vscode.TextDocument): Promise<string | undefined> {
        const reason = await readOnlyReason(document);
        if (reason !== undefined) return `${reason}; nothing was changed.`;
        return this.busyReason(document);
    }

    /** Rewrite; it never throws, and the user sees how it ended. It can be cancelled before there is a server too. */
    async run(target: Target, instruction: string): Promise<void> {
        const refusal = await this.refusal(target.document);
        const reason = refusal ?? this.busyReason(target.document); // another may have begun meanwhile
        if (reason !== undefined) return this.fail(reason);
        const document = target.document.uri;
        const job = this.running.begin(document.toString(), instruction, this.server.running ? "rewriting" : "starting");
        const source = new vscode.CancellationTokenSource();
        this.cancels.set(job, source);
        try {
            const client = await this.server.awaited(source);
            if (source.token.isCancellationRequested) this.tell(this.endedBy(undefined, job), job);
            else if (client !== undefined) await this.send(client, target, job, source.token); // else the user was told
        } catch (error) {
            this.tell(this.endedBy(error, job), job);
        } finally {
            this.cancels.delete(job);
            this.givenUp.delete(job);
            source.dispose();
            this.reviews.end(job.uri);
            this.view.end(document, job.name);
            this.running.end(job);
        }
    }

    /** Cancel these, as far as they are not over; what is in the texts stays. */
    async cancel(jobs: readonly Job[]): Promise<void> {
        await Promise.all(jobs.filter((job) => this.cancels.has(job)).map((job) => this.cancelJob(job)));
    }

    private async cancelJob(job: Job): Promise<void> {
        const source = this.cancels.get(job);
        const client = this.server.running;
        if (client === undefined || !job.isSent) return source?.cancel();
        const by = job.name === undefined ? { uri: job.uri } : { job: job.name };
        setTimeout(() => source?.cancel(), CANCEL_PATIENCE_MS);
        setTimeout(() => this.givenUp.get(job)?.(), LAST_PATIENCE_MS);
        const asked = client.sendRequest(ExecuteCommandRequest.type, { command: "specd.cancel", arguments: [by] });
        this.reviews.end(job.uri); // after that: what the user did not choose is not left out by choice
        await asked.catch(() => source?.cancel());
    }

    /** Take back the hunks of the latest rewrite in a document, or of the latest of all. */
    async revert(document: vscode.TextDocument | undefined): Promise<void> {
        await this.takeBack(document?.uri, undefined);
    }

    /** `job`: by the server's name of it; undefined for the latest. */
    private async takeBack(document: vscode.Uri | undefined, job: string | undefined): Promise<void> {
        const client = await this.server.awaited();
        if (client === undefined) return;
        const uri = document && client.code2ProtocolConverter.asUri(document);
        if (uri === undefined) this.undo.beginAll(); // it may be in any
        else this.undo.begin(uri);
        const by = job !== undefined ? { job } : uri !== undefined ? { uri } : {};
        try {
            this.show(shownOfRevert(await client.sendRequest<RevertResult>(METHODS.revert, by)));
        } catch (error) {
            this.fail(messageOf(error));
        }
    }

    /** A code action for a hunk that was not applied: the server puts it in, or drops it. */
    async settle(argument: unknown): Promise<void> {
        const client = await this.server.awaited();
        this.undo.beginAll();
        await client
            ?.sendRequest(ExecuteCommandRequest.type, { command: "specd.conflict", arguments: [argument] })
            .catch((error: unknown) => this.fail(messageOf(error)));
    }

    /** Ask the server, and show what it answers. */
    private async send(client: LanguageClient, target: Target, job: Job, token: vscode.CancellationToken): Promise<void> {
        const { loss } = target;
        if (loss !== undefined) return this.tell(failure(`${loss}; ${kept(job)}.`), job);
        const params: RewriteParams = { ...placeOf(client, target), instruction: job.instruction };
        if (target.comment !== undefined) params.comment = target.comment;
        const { uri } = params;
        this.undo.begin(uri);
        this.view.begin(target.document.uri);
        this.running.sent(job);
        const answer = client.sendRequest<RewriteResult>(METHODS.rewrite, params, token);
        const givenUp = new Promise<undefined>((resolve) => this.givenUp.set(job, () => resolve(undefined)));
        const result = await Promise.race([answer, givenUp]);
        if (result !== undefined) {
            job.name ??= result.job;
            return this.tell(shownOf(result), job);
        }
        answer.catch(() => undefined); // it is of nobody's interest any more
        const words = "cancelled; the language server did not answer, and is started anew. What it has changed so far stays.";
        this.tell(failure(words), job);
        void this.server.restart();
    }

    /** Tell the user that it came to nothing, and why. */
    fail(reason: string): void {
        this.show(failure(reason));
    }

    private endedBy(error: unknown, job: Job): Shown {
        if (error === undefined || (error instanceof ResponseError && error.code === REQUEST_CANCELLED)) {
            const told = error !== undefined && /^cancelled/.test(error.message) ? error.message : `cancelled; ${kept(job)}`;
            return { level: "status", text: `specd: ${told}`, canRevert: false };
        }
        if (this.server.running === undefined || isOfConnection(error)) {
            const what = this.server.isRestarting ? "was started anew" : "has gone";
            return failure(`the language server ${what}; what it has changed so far stays, and undo takes it back.`);
        }
        if (error instanceof ResponseError && error.code === ErrorCodes.MethodNotFound) {
            return failure(`${this.server.program} does not know rewrites: it is not specd's, or an older one. See specd.path.`);
        }
        return failure(messageOf(error));
    }

    private busyReason(document: vscode.TextDocument): string | undefined {
        const [job] = this.running.of(document.uri.toString());
        return job && (job.isReviewed ? REVIEWED : BUSY);
    }

    /** How a job has ended, with its document's name where the user looks at another. */
    private tell(shown: Shown, job: Job): void {
        const uri = vscode.Uri.parse(job.uri);
        const isSeen = vscode.window.activeTextEditor?.document.uri.toString() === job.uri;
        const text = isSeen ? shown.text : shown.text.replace("specd: ", (start) => `${start}${uri.path.split("/").pop()}: `);
        this.show({ ...shown, text }, () => this.takeBack(uri, job.name));
    }

    private show({ level, text, canRevert }: Shown, revert: () => Promise<void> = async () => undefined): void {
        this.log.trace(text); // it may quote the model, and the model the user
        this.status.tell(text.length > 120 ? `${text.slice(0, 119)}…` : text, level === "status");
        if (level === "status") return;
        const buttons = [...(canRevert ? ["Revert"] : []), "Show Log"];
        const say = { info: vscode.window.showInformationMessage, warning: vscode.window.showWarningMessage };
        const shown = level === "error" ? vscode.window.showErrorMessage : say[level];
        void shown(asMessage(text), ...buttons).then((chosen) => {
            if (chosen === "Revert") void revert();
            if (chosen === "Show Log") this.log.show();
        });
    }
}

function kept({ hunks }: Job): string {
    if (!hunks) return "nothing was changed";
    return `${hunks} ${hunks === 1 ? "hunk" : "hunks"} applied so far ${hunks === 1 ? "stays" : "stay"}`;
}

/** Whether a request was not answered because the server has gone. */
function isOfConnection(error: unknown): boolean {
    return error instanceof ResponseError && NO_CONNECTION.includes(error.code);
}

function failure(message: string): Shown {
    return { level: "error", text: `specd: ${message}`, canRevert: false };
}

function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error);
}

/** Where, in the text as it is now. */
function placeOf(client: LanguageClient, { document, range }: Target): Omit<RewriteParams, "instruction"> {
    const uri = client.code2ProtocolConverter.asUri(document.uri);
    const at = range === undefined ? {} : { range: client.code2ProtocolConverter.asRange(range) };
    return { uri, version: document.version, ...at };
}
