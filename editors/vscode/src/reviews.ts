// Edits of which the user takes or leaves each hunk, in VS Code's Refactor Preview: one at a time, since there is one
// preview, told to be waiting for the user meanwhile, and closed where their rewrite is over before.

import * as vscode from "vscode";

export type Choice = "taken" | "left" | "stale";

interface Review {
    readonly document: vscode.TextDocument;
    isShown: boolean;
    isOver: boolean;
}

export class Reviews {
    /** Called when the edit of a document begins to wait for the user, and when it does no longer. */
    onChange: (uri: string, isWaiting: boolean) => void = () => {};
    private readonly waiting = new Set<Review>();
    private latest: Promise<unknown> = Promise.resolve();

    /** What the user chooses of an edit that `show` brings up and, as far as it is taken, makes; true if any of it was. */
    async ask(document: vscode.TextDocument, show: () => Promise<boolean>): Promise<Choice> {
        const review: Review = { document, isShown: false, isOver: false };
        const uri = document.uri.toString();
        this.waiting.add(review);
        this.onChange(uri, true);
        const chosen = this.latest.then(() => this.choice(review, show));
        this.latest = chosen.catch(() => undefined);
        try {
            return await chosen;
        } finally {
            this.waiting.delete(review);
            this.onChange(uri, false);
        }
    }

    /** The rewrite of a document is over, whatever the user would have chosen. */
    end(uri: string): void {
        for (const review of this.waiting) {
            if (review.document.uri.toString() !== uri || review.isOver) continue;
            review.isOver = true;
            if (review.isShown) void vscode.commands.executeCommand("refactorPreview.discard").then(undefined, () => undefined);
        }
    }

    private async choice(review: Review, show: () => Promise<boolean>): Promise<Choice> {
        if (review.isOver) return "left";
        const { document } = review;
        const { version } = document;
        review.isShown = true;
        try {
            if (await show()) return "taken";
        } finally {
            review.isShown = false;
        }
        return review.isOver || (document.version === version && !document.isClosed) ? "left" : "stale";
    }
}
