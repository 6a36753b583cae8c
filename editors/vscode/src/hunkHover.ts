// What is shown over a marked hunk: its old lines, and what can be done with it. Made when it is asked for: VS Code takes
// the words of hundreds of decorations far more slowly than their places.

import * as vscode from "vscode";
import type { NamedHunk } from "./hunkCommands";
import type { Mark } from "./marks";

const COMMANDS = ["specd.revertHunk", "specd.previousHunk", "specd.nextHunk", "specd.dismissHunks"];

/** `markAt`: the mark that is shown at a line. */
export function registerHovers(markAt: (document: vscode.TextDocument, line: number) => Mark | undefined): vscode.Disposable {
    return vscode.languages.registerHoverProvider([{ scheme: "file" }, { scheme: "untitled" }], {
        provideHover(document, { line }) {
            const mark = markAt(document, line);
            return mark && new vscode.Hover(hoverOf(mark, document), document.lineAt(line).range);
        },
    });
}

function hoverOf({ job, number, oldText }: Mark, { uri, languageId }: vscode.TextDocument): vscode.MarkdownString {
    const named: NamedHunk = { uri: uri.toString(), job, number };
    const argument = encodeURIComponent(JSON.stringify([named]));
    const hover = new vscode.MarkdownString(
        `specd: [Revert](command:specd.revertHunk?${argument} "Bring the old lines back") · ` +
            `[Previous](command:specd.previousHunk?${argument}) · [Next](command:specd.nextHunk?${argument}) · ` +
            `[Dismiss all](command:specd.dismissHunks?${argument})\n\n`,
    );
    hover.isTrusted = { enabledCommands: COMMANDS };
    if (oldText) hover.appendCodeblock(oldText.replace(/\r?\n$/, ""), languageId);
    else hover.appendMarkdown("These lines are new.");
    return hover;
}
