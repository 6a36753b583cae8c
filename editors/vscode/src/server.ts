// The language server's life: found, started, started anew when it dies or settings change, and said to the user where it
// fails.

import * as vscode from "vscode";
import { type LanguageClient, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import type { EditApplier } from "./applyEdit";
import { type Channels, makeClient } from "./client";
import { offeredActions } from "./codeActions";
import { expand, find, isOffLimits, whyNoCommand } from "./executable";
import { machine } from "./machine";
import { Deaths, within } from "./patience";
import { asMessage } from "./plain";
import type { ProgressValue } from "./progress";
import { ServerProcess } from "./serverProcess";
import { type Settings, serverOptions } from "./settings";
import { waitedFor } from "./waiting";

export type ServerState = "stopped" | "starting" | "running" | "failed";

const INSTALL = "install specd (pip install . in a clone of it), or name the command in the setting specd.path";

const UNTRUSTED = "is in a workspace that you do not trust, and is not run. Trust it, or name another one in specd.path.";
const LAST_WORDS_MS = 500; // its end is seen a little later than that of the connection

export class Server implements vscode.Disposable {
    readonly onDidChangeState: vscode.Event<ServerState>;
    /** Called with each client before it starts, so that handlers can be put in. */
    onClient: (client: LanguageClient) => void = () => {};
    onProgress: (token: string, value: ProgressValue) => void = () => {};
    /** Whether an instruction is kept, which can be offered again. */
    hasHistory: () => boolean = () => false;
    problem = "";
    private client: LanguageClient | undefined;
    private process: ServerProcess | undefined;
    private current: ServerState = "stopped";
    private starting: Promise<LanguageClient | undefined> | undefined;
    private isOver = false;
    private restarts = 0; // under way
    private readonly deaths = new Deaths();
    private readonly changed = new vscode.EventEmitter<ServerState>();

    constructor(
        private readonly settings: () => Settings,
        private readonly channels: Channels,
        private readonly edits: EditApplier,
    ) {
        this.onDidChangeState = this.changed.event;
    }

    get state(): ServerState {
        return this.current;
    }

    /** The client, started if need be; undefined if it cannot be, after the user was told why. */
    ready(): Promise<LanguageClient | undefined> {
        if (this.running !== undefined) return Promise.resolve(this.running);
        if (this.starting === undefined) {
            const starting = this.start().finally(() => {
                if (this.starting === starting) this.starting = undefined;
            });
            this.starting = starting;
        }
        return this.starting;
    }

    /** `ready` for a user who waits for it: that is shown, and undefined comes too as soon as `source` is cancelled. */
    async awaited(source = new vscode.CancellationTokenSource()): Promise<LanguageClient | undefined> {
        return this.running ?? waitedFor(this.ready(), "specd: the language server is starting", source);
    }

    /** What runs, by its own words. */
    get program(): string {
        const { name = "the language server", version = "" } = this.client?.initializeResult?.serverInfo ?? {};
        return `${name} ${version}`.trim();
    }

    /** The client if it runs; it is not started. */
    get running(): LanguageClient | undefined {
        return this.current === "running" ? this.client : undefined;
    }

    /** Whether it does not run since somebody wanted it anew. */
    get isRestarting(): boolean {
        return this.restarts > 0;
    }

    /** isAskedFor: by the user, who waits for it. */
    async restart(isAskedFor = true): Promise<void> {
        this.deaths.forget();
        this.restarts++;
        try {
            await this.stop();
            await (isAskedFor ? this.awaited() : this.ready());
        } finally {
            this.restarts--;
        }
    }

    /** Stop it, or give its start up. */
    async stop(): Promise<void> {
        const { client, process } = this;
        this.client = this.process = this.starting = undefined;
        try {
            if (client?.needsStop()) await client.dispose(3000);
        } catch (error) {
            this.channels.log.debug(`stop: ${String(error)}`); // it was starting, or does not answer
        } finally {
            process?.stop();
        }
        if (this.client === undefined) this.become("stopped");
    }

    /** The end of the extension: it stops and is not started again. */
    async close(): Promise<void> {
        this.isOver = true;
        await this.stop();
    }

    dispose(): void {
        this.changed.dispose();
    }

    private async start(): Promise<LanguageClient | undefined> {
        if (this.isOver) return undefined;
        const settings = this.settings();
        const command = find(settings.path, machine());
        if (command === undefined) {
            return this.fail(`the command ${JSON.stringify(settings.path)} ${whyNoCommand(settings.path, machine())}; ${INSTALL}.`);
        }
        if (isOffLimits(command, machine())) return this.fail(`\`${command}\` ${UNTRUSTED}`);
        const words = [command, ...settings.args.map((word) => expand(word, machine()))];
        this.channels.log.info(`starting ${words.join(" ")}`);
        this.become("starting");
        const client = this.makeClient(words, settings);
        this.client = client;
        this.onClient(client);
        try {
            const { startTimeout } = settings;
            await within(client.start(), startTimeout, () => new Late(startTimeout));
        } catch (error) {
            const why = await this.whyNot(words.join(" "), error);
            return client === this.client ? this.fail(why) : this.ready(); // else its start was given up, for another
        }
        if (client !== this.client) return this.ready();
        this.problem = "";
        this.become("running");
        return client;
    }

    private makeClient([command = "", ...args]: string[], settings: Settings): LanguageClient {
        const run = async () => {
            const { folder, home, isTrusted } = machine();
            const started = await ServerProcess.start(command, args, isTrusted ? folder : home);
            if (client === this.client) this.process = started;
            else started.stop();
            return started.child;
        };
        const client: LanguageClient = makeClient(run, this.channels, {
            initializationOptions: serverOptions(settings),
            revealOutputChannelOn: RevealOutputChannelOn.Never,
            initializationFailedHandler: () => false,
            middleware: {
                provideCodeActions: (...asked) => offeredActions(this.hasHistory(), ...asked),
                workspace: { handleApplyEdit: (params, next) => this.edits.apply(client, params, next) },
                handleWorkDoneProgress: (token, value, next) => {
                    // ours to show, with a way to cancel it; the end is passed on, so that the client can tidy up
                    if (value.kind === "end") next(token, value);
                    this.onProgress(String(token), value);
                },
            },
        });
        client.onDidChangeState(({ oldState, newState }) => {
            const hasDied = oldState === State.Running && newState === State.Stopped;
            if (hasDied && client === this.client) void this.bury();
        });
        return client;
    }

    /** It has ended by itself: it is started again, so that the lightbulb works, unless it dies again and again. */
    private async bury(): Promise<void> {
        await this.stop();
        this.channels.log.warn("the language server has ended");
        if (this.deaths.isWorthAStart(Date.now())) await this.ready();
        else this.fail(`the language server has gone: ${this.deaths.words}. Its log says more.`);
    }

    private async whyNot(words: string, error: unknown): Promise<string> {
        if (error instanceof Late) return `\`${words}\` ${error.message}. Try again, or raise specd.startTimeout.`;
        const ended = await this.process?.ended(LAST_WORDS_MS);
        const how = ended === undefined ? `: ${String(error)}` : `, but ended ${ended}`;
        return `\`${words}\` did not start as a language server${how.replace(/[.\s]+$/, "")}. Run it in a shell, or see specd.path and specd.args.`;
    }

    private fail(problem: string): undefined {
        const { client, process } = this;
        this.client = this.process = undefined;
        process?.stop();
        void client?.dispose().catch(() => undefined); // it never ran
        this.problem = problem;
        this.channels.log.error(problem);
        this.become("failed");
        void this.offerHelp(problem);
        return undefined;
    }

    private async offerHelp(problem: string): Promise<void> {
        const chosen = await vscode.window.showErrorMessage(asMessage(`specd: ${problem}`), "Open Settings", "Show Log", "Try Again");
        if (chosen === "Open Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "@ext:specd.specd");
        if (chosen === "Show Log") this.channels.log.show();
        if (chosen === "Try Again") await this.restart();
    }

    private become(state: ServerState): void {
        this.current = state;
        this.changed.fire(state);
    }
}

/** The server has not answered yet. */
class Late extends Error {
    constructor(seconds: number) {
        super(`did not answer within ${seconds} s`);
    }
}
