import assert from "node:assert/strict";
import { test } from "node:test";
import type * as vscode from "vscode";
import { offeredActions } from "../../src/codeActions";

const DOCUMENT = { version: 4 } as vscode.TextDocument;

function action(title: string, instruction: string): vscode.CodeAction {
    return { title, command: { title, command: "specd.rewrite", arguments: [{ uri: "file:///a", range: {}, instruction }] } };
}

async function offered(hasHistory: boolean, actions: vscode.CodeAction[] | null): Promise<vscode.CodeAction[] | null | undefined> {
    const none = {} as never;
    return (await offeredActions(hasHistory, DOCUMENT, none, none, none, () => actions)) as vscode.CodeAction[] | null | undefined;
}

test("the last instruction is offered again where instructions are kept", async () => {
    const actions = (): vscode.CodeAction[] => [action("Rewrite: Simplify", "simplify"), action("Rewrite again: rename it", "rename it")];
    const titles = async (hasHistory: boolean): Promise<string[]> => (await offered(hasHistory, actions()))!.map(({ title }) => title);
    assert.deepEqual(await titles(true), ["Rewrite: Simplify", "Rewrite again: rename it"]);
    assert.deepEqual(await titles(false), ["Rewrite: Simplify"]);
});

test("each action carries the version of the text, and a server without an answer offers nothing", async () => {
    const [one] = (await offered(false, [action("Rewrite: Simplify", "simplify")]))!;
    assert.deepEqual((one!.command!.arguments as { version: number }[])[0]!.version, 4);
    assert.equal((await offered(false, null)) ?? null, null);
    const none = {} as never;
    const gone = await offeredActions(true, DOCUMENT, none, none, none, () => Promise.reject(new Error("gone")));
    assert.equal(gone ?? null, null);
});
