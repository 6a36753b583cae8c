// The texts that a rewrite makes of a document, one after the other, so that one undo goes all the way: VS Code begins an
// undo step of its own at each save, and for each edit of a text that no editor shows. Values only.

import { createHash } from "node:crypto";

export class UndoChain {
    private readonly chains = new Map<string, string[]>(); // document to fingerprints, the text before the first edit first

    /** An edit that does not follow on another of ours will be made on `text`. */
    begin(uri: string, text: string): void {
        this.chains.set(uri, [fingerprint(text)]);
    }

    /** An edit of ours has made `text` of it. */
    add(uri: string, text: string): void {
        this.chains.get(uri)?.push(fingerprint(text));
    }

    /** Whether `text` stands between two edits of one rewrite, so that an undo or a redo that came here has to go on. */
    isWithin(uri: string, text: string): boolean {
        const chain = this.chains.get(uri) ?? [];
        if (chain.length < 3) return false;
        const at = chain.indexOf(fingerprint(text));
        return at > 0 && at < chain.length - 1;
    }

    forget(uri: string): void {
        this.chains.delete(uri);
    }
}

function fingerprint(text: string): string {
    return createHash("sha1").update(text).digest("base64");
}
