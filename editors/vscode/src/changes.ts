// VS Code's changes of a text as `marks.ts` counts them.

import type * as vscode from "vscode";
import type { Change } from "./marks";

export function changesOf(event: vscode.TextDocumentChangeEvent): Change[] {
    return event.contentChanges.map(({ range, text }) => ({ start: range.start, end: range.end, text }));
}
