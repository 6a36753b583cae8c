// specd in VS Code. This file puts the parts together; what they do is said in each.

import * as vscode from "vscode";
import { EditApplier } from "./applyEdit";
import { UndoSteps } from "./editPlan";
import { goToHunk, revertHunk } from "./hunkCommands";
import { HunkView } from "./hunkView";
import { Running } from "./progress";
import { RewriteCommands } from "./rewriteCommands";
import { Rewrites } from "./rewrites";
import { openSample } from "./sample";
import { Server } from "./server";
import { needsRestart, readSettings, type Settings } from "./settings";
import { StatusItem } from "./status";
import { showStatus } from "./statusCommand";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const log = vscode.window.createOutputChannel("specd", { log: true });
    const trace = vscode.window.createOutputChannel("specd trace", { log: true });
    let settings = read();
    const undo = new UndoSteps();
    const running = new Running();
    const view = new HunkView(() => settings.marks);
    const edits = new EditApplier(undo);
    const specd = (server = new Server(() => settings, { log, trace }, edits));
    const status = new StatusItem(running, () => specd.state, () => specd.problem);
    const rewrites = new Rewrites(specd, running, undo, view, status, log);
    const commands = new RewriteCommands(specd, rewrites, context.globalState, () => settings);
    const active = (): vscode.TextDocument | undefined => vscode.window.activeTextEditor?.document;

    specd.onClient = (client) => rewrites.listen(client);
    specd.onProgress = (_token, value) => running.report(value);
    const update = (): void => {
        status.update();
        const document = active();
        const isBusy = document !== undefined && running.of(document.uri.toString()).length > 0;
        void vscode.commands.executeCommand("setContext", "specd.busy", isBusy);
        void vscode.commands.executeCommand("setContext", "specd.busyAnywhere", running.size > 0);
    };
    running.onChange = update;

    const register = (name: string, run: (argument?: unknown) => unknown): vscode.Disposable =>
        vscode.commands.registerCommand(`specd.${name}`, run);
    context.subscriptions.push(
        log,
        trace,
        specd,
        status,
        view,
        edits,
        specd.onDidChangeState((state) => {
            if (state === "starting") status.forget();
            update();
        }),
        vscode.window.onDidChangeActiveTextEditor(update),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (!event.affectsConfiguration("specd")) return;
            const before = settings;
            settings = read();
            view.update();
            if (needsRestart(before, settings)) void specd.restart();
        }),
        register("rewrite", (argument) => commands.rewrite(argument)),
        register("rewriteFile", () => commands.byPrompt("file")),
        register("again", () => commands.again()),
        register("cancel", () => rewrites.cancel(active())),
        register("revert", () => rewrites.revert(active())),
        register("conflict", (argument) => rewrites.settle(argument)),
        register("nextHunk", () => goToHunk(view, 1)),
        register("previousHunk", () => goToHunk(view, -1)),
        register("revertHunk", (named) => revertHunk(view, named)),
        register("dismissHunks", () => active() && view.dismiss(active()!)),
        register("showLog", () => log.show()),
        register("showTrace", () => trace.show()),
        register("showStatus", () => showStatus(specd, log)),
        register("restart", () => specd.restart()),
        register("clearHistory", () => commands.clearHistory()),
        register("openSample", () => openSample()),
    );
    void specd.ready();
}

export function deactivate(): Promise<void> | undefined {
    return server?.close();
}

function read(): Settings {
    const configuration = vscode.workspace.getConfiguration("specd");
    const { settings, problems } = readSettings((key) => configuration.get(key));
    for (const problem of problems) void vscode.window.showWarningMessage(`specd: ${problem}`);
    return settings;
}
