// The status item: the server's state, the progress of a rewrite with a click to cancel it, and how the last one ended.

import * as vscode from "vscode";
import { asLabel } from "./plain";
import type { Running } from "./progress";
import type { ServerState } from "./server";

const SHOWN_MS = 10_000; // how long an outcome stays

export class StatusItem implements vscode.Disposable {
    private readonly item = vscode.window.createStatusBarItem("specd.status", vscode.StatusBarAlignment.Right, 100);
    private outcome = "";
    private timer: NodeJS.Timeout | undefined;

    constructor(
        private readonly running: Running,
        private readonly state: () => ServerState,
        private readonly problem: () => string,
    ) {
        this.item.name = "specd";
        this.update();
        this.item.show();
    }

    /** Show how a rewrite ended, for a while. */
    tell(text: string, isGood: boolean): void {
        clearTimeout(this.timer);
        this.outcome = `${isGood ? "$(check)" : "$(info)"} ${asLabel(text)}`;
        this.timer = setTimeout(() => {
            this.outcome = "";
            this.update();
        }, SHOWN_MS);
        this.update();
    }

    /** What was told is of no interest any more. */
    forget(): void {
        clearTimeout(this.timer);
        this.outcome = "";
    }

    update(): void {
        const state = this.state();
        this.item.backgroundColor = undefined;
        this.item.command = "specd.showStatus";
        if (this.running.size) {
            const which = this.running.size > 1 ? "the active text's rewrite, or one that you choose" : "the rewrite";
            this.say(`$(sync~spin) specd: ${asLabel(this.running.text)}`, `Click to cancel ${which} (Escape in its editor)`);
            this.item.command = "specd.cancel";
            if (this.running.isReviewed) {
                this.say(`$(checklist) specd: ${asLabel(this.running.text)}`, "Click to see the preview (Escape in the text leaves all out)");
                this.item.command = "refactorPreview.focus";
            }
        } else if (state === "failed") {
            this.say("$(warning) specd", this.problem());
            this.item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
        } else if (this.outcome) {
            this.say(this.outcome, "How the last rewrite ended. Click for more.");
        } else if (state === "starting") {
            this.say("$(loading~spin) specd", "specd is starting");
        } else {
            this.say("$(pencil) specd", state === "running" ? "specd is ready. Click for its status." : "specd is not running.");
        }
    }

    dispose(): void {
        clearTimeout(this.timer);
        this.item.dispose();
    }

    private say(text: string, tooltip: string): void {
        this.item.text = text;
        this.item.tooltip = tooltip;
        this.item.accessibilityInformation = { label: text.replace(/^\$\([^)]*\) ?/, "").replaceAll("\\$(", "$(") };
    }
}
