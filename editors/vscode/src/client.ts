// The language client: what it tells the server of itself, and what it leaves to this extension.

import {
    type ClientCapabilities,
    CloseAction,
    type DynamicFeature,
    ErrorAction,
    type ErrorHandler,
    ExecuteCommandRequest,
    type FeatureState,
    LanguageClient,
    type LanguageClientOptions,
    type ServerOptions,
    type StaticFeature,
} from "vscode-languageclient/node";
import type { LogOutputChannel } from "vscode";

/** Tells the server that the instruction is asked for here, and that changes are told at once. */
class PluginFeature implements StaticFeature {
    fillClientCapabilities(capabilities: ClientCapabilities): void {
        capabilities.experimental = { specd: { inputBox: true, hunkAck: true, undoJoin: true } };
    }
    initialize(): void {}
    getState(): FeatureState {
        return { kind: "static" };
    }
    clear(): void {}
}

/** Whether a server that has ended starts again is decided in `server.ts`. */
const NEVER_RESTART: ErrorHandler = {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => ({ action: CloseAction.DoNotRestart, handled: true, message: "the connection to the server is closed" }),
};

/**
 * A client that does not register the server's commands with VS Code, since this extension has commands of those names,
 * and that writes errors to the log only: what the user should know is said in words of ours.
 */
class SpecdClient extends LanguageClient {
    override error(message: string, data?: unknown): void {
        super.error(message, data instanceof Error ? data.message : data, false); // where it was thrown says nothing here
    }

    override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
        const method = "registrationType" in feature ? feature.registrationType.method : "";
        if (method !== ExecuteCommandRequest.method) super.registerFeature(feature);
    }
}

export interface Channels {
    log: LogOutputChannel;
    trace: LogOutputChannel;
}

export function makeClient(server: ServerOptions, channels: Channels, options: LanguageClientOptions): LanguageClient {
    const client = new SpecdClient("specd", "specd", server, {
        documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
        outputChannel: channels.log,
        traceOutputChannel: channels.trace,
        errorHandler: NEVER_RESTART,
        ...options,
    });
    client.registerFeature(new PluginFeature());
    return client;
}
