// specd in VS Code. This file puts the parts together; what they do is said in each.

import * as vscode from "vscode";
import { EditApplier } from "./applyEdit";
import { cancel } from "./cancelCommand";
import { tellContext } from "./context";
import { UndoSteps } from "./editPlan";
import { dismissHunks, goToHunk, revertHunk } from "./hunkCommands";
import { HunkView } from "./hunkView";
import { Running } from "./progress";
import { RewriteCommands } from "./rewriteCommands";
import { Reviews } from "./reviews";
import { Rewrites } from "./rewrites";
import { openSample } from "./sample";
import { Server } from "./server";
import { needsRestart, readSettings, type Settings } from "./settings";
import { StatusItem } from "./status";
import { showStatus } from "./statusCommand";
import { isRewritable } from "./target";

let server: Server | undefined;
let channels: vscode.LogOutputChannel[] = [];

export function activate(extension: vscode.ExtensionContext): void {
    const log = vscode.window.createOutputChannel("specd", { log: true });
    const trace = vscode.window.createOutputChannel("specd trace", { log: true });
    channels = [log, trace];
    let settings = read();
    const undo = new UndoSteps();
    const running = new Running();
    const view = new HunkView(() => settings.marks);
    const reviews = new Reviews();
    const edits = new EditApplier(undo, reviews);
    const specd = (server = new Server(() => settings, { log, trace }, edits));
    const status = new StatusItem(running, () => specd.state, () => specd.problem);
    const rewrites = new Rewrites(specd, running, undo, view, reviews, status, log);
    const commands = new RewriteCommands(specd, rewrites, extension.globalState, () => settings);
    const active = (): vscode.TextDocument | undefined => {
        const document = vscode.window.activeTextEditor?.document;
        return document !== undefined && isRewritable(document) ? document : undefined; // the log may have the keyboard
    };

    specd.onClient = (client) => rewrites.listen(client);
    specd.hasHistory = () => commands.hasHistory;
    specd.onProgress = (_token, value) => running.report(value);
    const update = (): void => {
        status.update();
        const document = active();
        const jobs = document === undefined ? [] : running.of(document.uri.toString());
        tellContext("busy", jobs.length > 0);
        tellContext("busyAnywhere", running.size > 0);
        tellContext("starting", jobs.some((job) => !job.isSent));
        tellContext("askedSelection", jobs.some((job) => job.isSelectionAsked));
    };
    running.onChange = update;
    reviews.onChange = (uri, isWaiting) => running.reviewed(uri, isWaiting);
    const readAnew = (isTrusted: boolean): void => {
        const before = settings;
        settings = read();
        view.update();
        void commands.trimHistory();
        if (needsRestart(before, settings) || (isTrusted && specd.state === "failed")) void specd.restart(false);
    };

    const register = (name: string, run: (argument?: unknown) => unknown): vscode.Disposable =>
        vscode.commands.registerCommand(`specd.${name}`, run);
    extension.subscriptions.push(
        specd,
        status,
        view,
        edits,
        specd.onDidChangeState((state) => {
            if (state === "starting") status.forget();
            update();
        }),
        vscode.window.onDidChangeActiveTextEditor(update),
        vscode.window.onDidChangeTextEditorSelection(({ kind, textEditor }) => {
            if (kind !== undefined) running.selected(textEditor.document.uri.toString()); // else an edit has moved it
        }),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (event.affectsConfiguration("specd")) readAnew(false);
        }),
        vscode.workspace.onDidGrantWorkspaceTrust(() => readAnew(true)),
        register("rewrite", (argument) => commands.rewrite(argument)),
        register("rewriteFile", () => commands.byPrompt("file")),
        register("again", () => commands.again()),
        register("cancel", () => cancel(rewrites, running, active())),
        register("revert", () => rewrites.revert(active())),
        register("conflict", (argument) => rewrites.settle(argument)),
        register("nextHunk", (named) => goToHunk(view, 1, named)),
        register("previousHunk", (named) => goToHunk(view, -1, named)),
        register("revertHunk", (named) => revertHunk(view, named)),
        register("dismissHunks", (named) => dismissHunks(view, named)),
        register("showLog", () => log.show()),
        register("showTrace", () => trace.show()),
        register("showStatus", () => showStatus(specd, log)),
        register("restart", () => specd.restart()),
        register("clearHistory", () => commands.clearHistory()),
        register("openSample", () => openSample()),
    );
    void specd.ready();
}

export async function deactivate(): Promise<void> {
    await server?.close();
    for (const channel of channels) channel.dispose(); // no sooner: what ends is still written there
}

function read(): Settings {
    const configuration = vscode.workspace.getConfiguration("specd");
    const { settings, problems } = readSettings((key) => configuration.get(key));
    for (const problem of problems) void vscode.window.showWarningMessage(`specd: ${problem}`);
    return settings;
}
