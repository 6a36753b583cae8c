// The language client: what it tells the server of itself, and what it leaves to this extension.

import {
    type ClientCapabilities,
    type DynamicFeature,
    ExecuteCommandRequest,
    type FeatureState,
    LanguageClient,
    type LanguageClientOptions,
    type ServerOptions,
    type StaticFeature,
} from "vscode-languageclient/node";
import type { LogOutputChannel } from "vscode";
import type { Executable } from "vscode-languageclient/node";

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

/** A client that does not register the server's commands with VS Code: this extension has commands of those names. */
class SpecdClient extends LanguageClient {
    override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
        const method = "registrationType" in feature ? feature.registrationType.method : "";
        if (method !== ExecuteCommandRequest.method) super.registerFeature(feature);
    }
}

export interface Channels {
    log: LogOutputChannel;
    trace: LogOutputChannel;
}

export function makeClient(run: Executable, channels: Channels, options: LanguageClientOptions): LanguageClient {
    const server: ServerOptions = { run, debug: run };
    const client = new SpecdClient("specd", "specd", server, {
        documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
        outputChannel: channels.log,
        traceOutputChannel: channels.trace,
        ...options,
    });
    client.registerFeature(new PluginFeature());
    return client;
}
