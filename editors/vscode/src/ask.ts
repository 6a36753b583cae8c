// Asks for the instruction: free text, what was asked before, and what the server offers for this place.

import * as vscode from "vscode";
import { oneLine } from "./history";
import { asLabel } from "./plain";

export interface Suggestion {
    label: string;
    instruction: string;
    /** Of the server's: it holds for this version of the text. */
    offer?: Offer;
}

export interface Offer {
    version: number;
    /** Where to do it, if not where the user asked. */
    range: vscode.Range | undefined;
    /** The line of a comment that asks for this. */
    comment: number | undefined;
}

export type Asked = { kind: "run"; suggestion: Suggestion } | { kind: "moreLines"; text: string };

interface Item extends vscode.QuickPickItem {
    suggestion?: Suggestion;
}

const MORE_LINES: vscode.QuickInputButton = {
    iconPath: new vscode.ThemeIcon("list-selection"),
    tooltip: "Write several lines",
};
/** Takes a place and shows nothing. */
const NOTHING: Item = { label: "", kind: vscode.QuickPickItemKind.Separator };
const EDIT: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("edit"), tooltip: "Change it first" };

/** undefined: the user has left the prompt. */
export function ask(
    where: string,
    history: readonly string[],
    offered: Promise<Suggestion[]>,
): Promise<Asked | undefined> {
    const pick = vscode.window.createQuickPick<Item>();
    pick.title = `Rewrite ${where}`;
    pick.placeholder = "What to change? e.g. rename total to sum. Enter rewrites, Escape leaves.";
    pick.buttons = [MORE_LINES];
    pick.matchOnDescription = true;
    pick.ignoreFocusOut = true; // a look at the text should not cost what was typed here
    const before = section("asked before", history.map((one) => item(given(one))));
    let offers: Item[] = [];
    let typed: Item | undefined;
    // A line that VS Code speaks of is known by its place in the list it had then: so the places never change.
    const list = (active: Item | undefined): void => {
        pick.items = [typed ?? NOTHING, ...before, ...offers];
        if (active) pick.activeItems = [active];
    };
    const type = (): void => {
        const label = pick.value;
        typed = label.trim() ? { label: asLabel(label), description: "rewrite", alwaysShow: true, suggestion: given(label) } : undefined;
        list(typed);
    };
    return new Promise((resolve) => {
        const finish = (asked: Asked | undefined): void => {
            resolve(asked);
            pick.hide();
        };
        pick.onDidChangeValue(type);
        pick.onDidTriggerButton(() => finish({ kind: "moreLines", text: pick.value }));
        pick.onDidTriggerItemButton(({ item: { suggestion } }) => {
            pick.value = suggestion?.instruction ?? "";
            type();
        });
        pick.onDidAccept(() => {
            if (pick.value && !typed) return; // blanks ask for nothing, and not for the line that is lit
            const suggestion = (pick.activeItems[0] ?? typed)?.suggestion;
            if (suggestion !== undefined) finish({ kind: "run", suggestion });
        });
        pick.onDidHide(() => {
            resolve(undefined);
            pick.dispose();
        });
        type();
        pick.show();
        pick.busy = true;
        void offered
            .then((found) => {
                offers = section("for this place", found.map(item));
                list(pick.activeItems[0]); // the user may have moved to another line meanwhile
            })
            .finally(() => (pick.busy = false));
    });
}

function given(instruction: string): Suggestion {
    return { label: oneLine(instruction), instruction: instruction.trim() };
}

function item(suggestion: Suggestion): Item {
    const { label, instruction } = suggestion;
    const isNamed = label !== oneLine(instruction) && !label.endsWith(oneLine(instruction));
    return { label: asLabel(label), ...(isNamed ? { description: asLabel(oneLine(instruction)) } : {}), buttons: [EDIT], suggestion };
}

function section(label: string, items: Item[]): Item[] {
    return items.length ? [{ label, kind: vscode.QuickPickItemKind.Separator }, ...items] : [];
}
