// The texts that a rewrite makes of a document, one after the other, so that one undo goes all the way: VS Code begins an
// undo step of its own at each save, and for each edit of a text that no editor shows. Where the text stands among them
// is followed, since the same text can come about by other means, and an undo of those is not to go on. Values only.

import { createHash } from "node:crypto";

interface Chain {
    /** Fingerprints, the text before the first edit first. */
    texts: string[];
    /** Which of them the text is now; -1: one from before them; `texts.length`: one that came after, by others. */
    at: number;
}

export type Direction = "undo" | "redo";

export class UndoChain {
    private readonly chains = new Map<string, Chain>(); // by document

    /** An edit of ours that does not follow on another of ours has made `after` of `before`. */
    begin(uri: string, before: string, after: string): void {
        this.chains.set(uri, { texts: [fingerprint(before), fingerprint(after)], at: 1 });
    }

    /** An edit of ours that follows on another of ours has made `text` of it. */
    add(uri: string, text: string): void {
        const chain = this.chains.get(uri);
        if (chain !== undefined) chain.at = chain.texts.push(fingerprint(text)) - 1;
    }

    /** Somebody else has changed the text. On top of ours it can be undone again; elsewhere it takes the way on away. */
    changed(uri: string): void {
        const chain = this.chains.get(uri);
        if (chain === undefined) return;
        if (chain.at < chain.texts.length - 1) this.chains.delete(uri);
        else chain.at = chain.texts.length;
    }

    /** An undo or a redo has come to `text`; whether that is between two edits of one rewrite, so that it has to go on. */
    moved(uri: string, direction: Direction, text: string): boolean {
        const chain = this.chains.get(uri);
        if (chain === undefined) return false;
        const { texts } = chain;
        chain.at = direction === "undo" ? undone(chain, fingerprint(text)) : redone(chain, fingerprint(text));
        return chain.at > 0 && chain.at < texts.length - 1;
    }

    forget(uri: string): void {
        this.chains.delete(uri);
    }
}

/** What others did on top is undone before ours is: until the rewrite's last text is there, nothing of ours was undone. */
function undone({ texts, at }: Chain, text: string): number {
    const last = texts.length - 1;
    if (at > last) return text === texts[last] ? last : at;
    return at > 0 ? texts.lastIndexOf(text, at - 1) : -1;
}

function redone({ texts, at }: Chain, text: string): number {
    if (at >= texts.length) return at;
    const found = texts.indexOf(text, at + 1);
    if (at === -1) return found === 0 ? 0 : -1;
    return found === -1 ? texts.length : found;
}

function fingerprint(text: string): string {
    return createHash("sha1").update(text).digest("base64");
}
