// The language server's life: found, started, started anew when settings change, and said to the user where it fails.

import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { type LanguageClient, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import type { EditApplier } from "./applyEdit";
import { type Channels, makeClient } from "./client";
import { expand, find, type Machine } from "./executable";
import type { ProgressValue } from "./progress";
import { type Settings, serverOptions } from "./settings";

export type ServerState = "stopped" | "starting" | "running" | "failed";

const INSTALL = "pip install specd, or name the command in the setting specd.path";

export class Server implements vscode.Disposable {
    readonly onDidChangeState: vscode.Event<ServerState>;
    /** Called with each client before it starts, so that handlers can be put in. */
    onClient: (client: LanguageClient) => void = () => {};
    onProgress: (token: string, value: ProgressValue) => void = () => {};
    problem = "";
    private client: LanguageClient | undefined;
    private current: ServerState = "stopped";
    private starting: Promise<LanguageClient | undefined> | undefined;
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
    async ready(): Promise<LanguageClient | undefined> {
        if (this.client !== undefined && this.current === "running") return this.client;
        this.starting ??= this.start().finally(() => (this.starting = undefined));
        return this.starting;
    }

    /** The client if it runs; it is not started. */
    get running(): LanguageClient | undefined {
        return this.current === "running" ? this.client : undefined;
    }

    async restart(): Promise<void> {
        await this.stop();
        await this.ready();
    }

    async stop(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        await client?.dispose(3000).catch((error: unknown) => this.channels.log.warn(String(error)));
        this.become("stopped");
    }

    dispose(): void {
        this.changed.dispose();
    }

    private async start(): Promise<LanguageClient | undefined> {
        await this.stop();
        const settings = this.settings();
        const command = find(settings.path, machine());
        if (command === undefined) {
            return this.fail(`the command ${JSON.stringify(settings.path)} was not found; ${INSTALL}.`);
        }
        const args = settings.args.map((word) => expand(word, machine()));
        this.channels.log.info(`starting ${command} ${args.join(" ")}`);
        this.become("starting");
        const client = makeClient({ command, args }, this.channels, {
            initializationOptions: serverOptions(settings),
            revealOutputChannelOn: RevealOutputChannelOn.Never,
            initializationFailedHandler: () => false,
            middleware: {
                workspace: { handleApplyEdit: (params, next) => this.edits.apply(client, params, next) },
                handleWorkDoneProgress: (token, value, next) => {
                    // ours to show, with a way to cancel it; the end is passed on, so that the client can tidy up
                    if (value.kind === "end") next(token, value);
                    this.onProgress(String(token), value);
                },
            },
        });
        client.onDidChangeState(({ newState }) => {
            if (client !== this.client) return;
            this.become(newState === State.Running ? "running" : newState === State.Starting ? "starting" : "stopped");
        });
        this.client = client;
        this.onClient(client);
        try {
            await client.start();
        } catch (error) {
            return this.fail(`${command} did not start as a language server: ${String(error)}`);
        }
        this.problem = "";
        this.become("running");
        return client;
    }

    private fail(problem: string): undefined {
        this.problem = problem;
        this.channels.log.error(problem);
        this.become("failed");
        void this.offerHelp(problem);
        return undefined;
    }

    private async offerHelp(problem: string): Promise<void> {
        const chosen = await vscode.window.showErrorMessage(`specd: ${problem}`, "Open Settings", "Show Log", "Try Again");
        if (chosen === "Open Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "specd.path");
        if (chosen === "Show Log") this.channels.log.show();
        if (chosen === "Try Again") await this.restart();
    }

    private become(state: ServerState): void {
        this.current = state;
        this.changed.fire(state);
    }
}

function machine(): Machine {
    return {
        env: process.env,
        home: homedir(),
        folder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
        isExecutable: isExecutable,
        isWindows: process.platform === "win32",
    };
}

function isExecutable(file: string): boolean {
    try {
        accessSync(file, process.platform === "win32" ? constants.F_OK : constants.X_OK);
        return statSync(file).isFile();
    } catch {
        return false;
    }
}
