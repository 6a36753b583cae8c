// How the end of a rewrite is shown: quietly where all is well, as a message where the user should look. Values only.

import type { RevertResult, RewriteResult } from "./protocol";

export type Level = "status" | "info" | "warning" | "error";

export interface Shown {
    level: Level;
    text: string;
    /** Whether there is something to take back, so that a button for it makes sense. */
    canRevert: boolean;
}

// "5 hunks, 0.9 s (212 lines, 3.1k tok/s, 87 % drafted)", and no note of the guard behind it
const PLAIN = /^[\d,]+ hunks?, [\d.]+ s \([^()]*\)(; you left [\d,]+ hunks? out)?$/;

export function shownOf(result: RewriteResult): Shown {
    const level = levelOf(result);
    return { level, text: `specd: ${result.message}`, canRevert: level !== "status" && result.hunks > 0 };
}

function levelOf(result: RewriteResult): Level {
    switch (result.outcome) {
        case "done":
            return PLAIN.test(result.message) ? "status" : "warning";
        case "no_change":
            return "info";
        case "cancelled":
            return "status";
        case "conflict":
        case "declined":
        case "truncated":
            return "warning";
        case "refused":
        case "error":
            return "error";
    }
}

export function shownOfRevert(result: RevertResult): Shown {
    const level = result.refused.length ? "warning" : result.reverted ? "status" : "info";
    return { level, text: `specd: ${result.message}`, canRevert: false };
}
