// `specd.review: hunks` in a real VS Code: taken in part, discarded, cancelled, hidden, and two of them at once.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Bench, picture, setUp, tearDown, withPicture } from "./bench";
import { GRID } from "./home";
import { PATIENCE } from "./patience";
import { shown, type Window } from "./window";

const FILE = "grid.py";
const WAITS = /waiting for your choice in the Refactor Preview/;
const row = (words: string): string => `.part.panel .monaco-list-row:has-text('${words}')`;
const button = (name: string): string => `.part.panel a.monaco-button:has-text('${name}')`;

async function previewed(window: Window): Promise<void> {
    await window.selectAll();
    await window.ask("rename Grid to Mesh");
    await window.page.locator(button("Apply")).waitFor();
    await window.waitForStatus(WAITS);
    assert.ok(!(await window.text()).includes("Mesh"), "nothing has changed yet");
}

describe("review by hunks in VS Code", { timeout: 600_000 * PATIENCE }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp((home) => home.machineSettings({ "specd.review": "hunks" }));
        for (const name of [FILE, "other.py"]) bench.home.write(name, GRID);
        await bench.window.openFile(FILE);
        await bench.window.waitForIdle();
    });
    after(() => tearDown(bench));
    beforeEach(async () => {
        await bench.window.openFile(FILE);
        await bench.window.waitForText(GRID);
        await bench.window.dismissNotifications();
    });

    test("nothing changes until the change is taken", withPicture(() => bench, async ({ window }) => {
        await previewed(window);
        await picture(bench, "review");
        await window.page.locator(`${row("n, n")} .monaco-checkbox, ${row("n, n")} input`).first().click();
        await window.page.click(button("Apply"));
        await window.waitForStatus(/1 hunk, .* you left 3 hunks out/);
        await window.closePanel();
        await window.waitForText(GRID.replace("Grid(n, n)", "Mesh(n, n)"), "the hunk that was taken");
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
    }));

    test("what is discarded is left out: at once, and no conflict", withPicture(() => bench, async ({ window }) => {
        await previewed(window);
        await window.page.click(button("Discard"));
        await window.waitForStatus(/you left all 4 hunks out/, 2);
        assert.equal(await window.page.locator(".notification-list-item-message").count(), 0);
        assert.equal(await window.text(), shown(GRID));
        assert.equal(await window.page.locator(".monaco-editor .squiggly-hint, .monaco-editor .squiggly-warning").count(), 0);
    }));

    test("Escape closes the preview at once; the next rewrite has one of its own", withPicture(() => bench, async ({ window, home }) => {
        const servers = home.languageServers();
        await previewed(window);
        await window.goTo(1);
        await window.press("Escape");
        await window.waitForStatus(/cancelled \(by the user\); nothing was changed/, 2);
        await window.page.locator(button("Apply")).waitFor({ state: "hidden" });
        await previewed(window);
        assert.equal(await window.page.locator(".monaco-dialog-box").count(), 0);
        assert.deepEqual(home.languageServers(), servers, "the language server is the same");
        await window.page.click(button("Discard"));
        await window.waitForStatus(/you left all 4 hunks out/);
    }));

    test("a preview that was hidden comes back by a click on the status item, and can be cancelled", withPicture(() => bench, async ({ window }) => {
        await previewed(window);
        await window.closePanel();
        await window.command("specd: Rewrite Again (Last Instruction)");
        await window.notification(/wait for your choice in the Refactor Preview; Escape in its text leaves all out/);
        await window.dismissNotifications();
        await window.page.click("#specd\\.specd\\.specd\\.status");
        await window.page.locator(button("Apply")).waitFor();
        await window.closePanel();
        await window.goTo(1);
        await window.press("Escape");
        await window.waitForStatus(/cancelled \(by the user\); nothing was changed/, 2);
        assert.equal(await window.text(), shown(GRID));
    }));

    test("the preview of a second text comes after that of the first", withPicture(() => bench, async ({ window }) => {
        await previewed(window);
        await window.openFile("other.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForStatus(/2 rewrites · waiting for your choice/);
        assert.equal(await window.page.locator(".monaco-dialog-box").count(), 0);
        await window.page.click(button("Discard"));
        await window.page.locator(row("other.py")).first().waitFor();
        await window.page.click(button("Discard"));
        await window.waitForStatus(/you left all 4 hunks out/);
    }));
});
