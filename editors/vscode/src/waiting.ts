// Waiting that is seen, and that the user can leave.

import * as vscode from "vscode";

const SHOWN_AFTER_MS = 400; // what comes sooner need not be shown

/** What `work` comes to, or undefined as soon as `source` is cancelled, which a button of the notification does too. */
export async function waitedFor<T>(
    work: Promise<T>,
    title: string,
    source: vscode.CancellationTokenSource,
): Promise<T | undefined> {
    const left = new Promise<undefined>((resolve) => source.token.onCancellationRequested(() => resolve(undefined)));
    const soon = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), SHOWN_AFTER_MS));
    const first = await Promise.race([work, left, soon]);
    if (first !== "late") return first as T | undefined;
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    return vscode.window.withProgress(options, (_progress, button) => {
        button.onCancellationRequested(() => source.cancel());
        return Promise.race([work, left]);
    });
}
