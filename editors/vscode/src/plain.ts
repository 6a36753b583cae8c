// Words that may be the model's or a program's, shown as what they are. VS Code makes a link of `[a](command:b)` in a
// message, one that runs the command, and an icon of `$(a)` in a label. Values only.

/** For a message: no part of it is a link. */
export function asMessage(text: string): string {
    return text.replace(/\]\((?=https?:|command:|file:)/gi, "] (");
}

/** For the status bar or the entry of a list: no part of it is an icon. */
export function asLabel(text: string): string {
    return text.replaceAll("$(", "\\$(");
}
