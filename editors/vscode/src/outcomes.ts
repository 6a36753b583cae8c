// How the end of a rewrite is shown: quietly where all is well, as a message where the user should look. Values only.

import type { RevertResult, RewriteResult } from "./protocol";

export type Level = "status" | "info" | "warning" | "error";

export interface Shown {
    level: Level;
    text: string;
    /** Whether there is something to take back, so that a button for it makes sense. */
    canRevert: boolean;
}

export function shownOf(result: RewriteResult): Shown {
    const level = levelOf(result);
    const text = result.message.replace("(specd.revert takes", "(Revert the Last Rewrite takes"); // as it is called here
    return { level, text: `specd: ${text}`, canRevert: level !== "status" && result.hunks > 0 };
}

/** The server says how grave it is; what went as it was meant to is told quietly. */
function levelOf({ outcome, severity }: RewriteResult): Level {
    if (severity !== "info") return severity;
    return outcome === "done" || outcome === "cancelled" ? "status" : "info";
}

export function shownOfRevert(result: RevertResult): Shown {
    const level = result.refused.length ? "warning" : result.reverted ? "status" : "info";
    return { level, text: `specd: ${result.message}`, canRevert: false };
}
