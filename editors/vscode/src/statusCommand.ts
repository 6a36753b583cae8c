// `specd: Show Status`: what runs, with which model, and what can be done about it.

import * as vscode from "vscode";
import { asMessage } from "./plain";
import { METHODS, type StatusResult } from "./protocol";
import type { Server } from "./server";

export async function showStatus(server: Server, log: vscode.LogOutputChannel): Promise<void> {
    const lines = await describe(server);
    for (const line of lines) log.info(line);
    const chosen = await vscode.window.showInformationMessage(asMessage(`specd: ${lines.join(" ")}`), "Show Log", "Restart", "Settings");
    if (chosen === "Show Log") log.show();
    if (chosen === "Restart") await server.restart();
    if (chosen === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "@ext:specd.specd");
}

async function describe(server: Server): Promise<string[]> {
    const client = server.state === "starting" ? await server.awaited() : server.running;
    if (client === undefined) return [`the language server is ${server.state}.`, ...(server.problem ? [server.problem] : [])];
    const version = client.initializeResult?.serverInfo?.version ?? "?";
    const lines = [`the language server ${version} runs.`];
    try {
        const { daemon, problem } = await client.sendRequest<StatusResult>(METHODS.status, {});
        if (daemon === null) return [...lines, ...(problem || "no daemon runs; the next rewrite starts one.").split("\n")];
        const memory = daemon.memory_bytes ? `, ${Math.round(daemon.memory_bytes / 2 ** 20)} MiB` : "";
        lines.push(`Daemon ${daemon.version ?? "?"}: ${daemon.state ?? "?"}${memory}.`);
        for (const model of daemon.models ?? []) {
            const where = model.device ? ` on ${model.device}` : "";
            lines.push(`Model ${model.path.split(/[\\/]/).pop()}: ${model.state}${where}.`);
        }
        if (daemon.problem) lines.push(daemon.problem);
    } catch (error) {
        lines.push(`It does not tell its status: ${String(error)}.`);
    }
    return lines;
}
