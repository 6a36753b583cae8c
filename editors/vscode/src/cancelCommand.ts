// `specd: Cancel the Rewrite`: that of the active text, or else the one that there is, or else one that the user chooses.

import * as vscode from "vscode";
import { oneLine } from "./history";
import { asLabel } from "./plain";
import type { Job, Running } from "./progress";
import type { Rewrites } from "./rewrites";

interface Choice extends vscode.QuickPickItem {
    jobs: readonly Job[];
}

export async function cancel(rewrites: Rewrites, running: Running, document: vscode.TextDocument | undefined): Promise<void> {
    const here = document === undefined ? [] : running.of(document.uri.toString());
    const all = running.of(undefined);
    if (here.length || all.length === 1) return rewrites.cancel(here.length ? here : all);
    if (!all.length) return void vscode.window.setStatusBarMessage("specd: nothing is being rewritten", 4000);
    const everything: Choice = { label: `All ${all.length} rewrites`, jobs: all };
    const chosen = await vscode.window.showQuickPick([...all.map(choice), everything], { title: "Cancel which rewrite?" });
    await rewrites.cancel(chosen?.jobs ?? []);
}

function choice(job: Job): Choice {
    const uri = vscode.Uri.parse(job.uri);
    const path = uri.scheme === "file" ? vscode.workspace.asRelativePath(uri) : uri.path;
    return { label: asLabel(path), description: asLabel(oneLine(job.instruction)), jobs: [job] };
}
