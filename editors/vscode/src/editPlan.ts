// The server's edits as an editor makes them: what they come to, and where an undo stop belongs. No VS Code here.

import type { ApplyWorkspaceEditParams, TextEdit } from "vscode-languageclient/node";

/** Edits of one document, for one version of it (null: whatever there is). */
export interface Plan {
    uri: string;
    version: number | null;
    edits: TextEdit[];
}

/** Whether the user is to be asked, which the client does. */
export function isReviewed({ edit }: ApplyWorkspaceEditParams): boolean {
    return edit.changeAnnotations !== undefined;
}

/** The plan of a `workspace/applyEdit` that changes the text of one document; undefined for any other. */
export function planOf(params: ApplyWorkspaceEditParams): Plan | undefined {
    const { changes, documentChanges } = params.edit;
    if (documentChanges !== undefined) {
        const [change, ...others] = documentChanges;
        if (change === undefined || others.length || !("textDocument" in change)) return undefined;
        if (!change.edits.every((edit): edit is TextEdit => "newText" in edit)) return undefined;
        return { uri: change.textDocument.uri, version: change.textDocument.version, edits: change.edits };
    }
    const [entry, ...others] = Object.entries(changes ?? {});
    return entry === undefined || others.length ? undefined : { uri: entry[0], version: null, edits: entry[1] };
}

/**
 * Makes one undo step of a rewrite's edits where nobody else changed the text between them, and a chronological undo
 * where somebody did: an edit gets a stop before it unless the change before it was ours too.
 */
export class UndoSteps {
    private readonly ours = new Map<string, number>(); // document to its version after our latest edit

    /** A rewrite begins: its first edit is not to be joined with what was before. */
    begin(uri: string): void {
        this.ours.delete(uri);
    }

    /** What comes next is an undo step of its own, whatever document it is in. */
    beginAll(): void {
        this.ours.clear();
    }

    /** Whether the edit that is made on `version` needs a stop before it. */
    needsStop(uri: string, version: number): boolean {
        return this.ours.get(uri) !== version;
    }

    made(uri: string, version: number): void {
        this.ours.set(uri, version);
    }
}
