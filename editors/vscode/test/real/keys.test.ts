// Escape and cancel in a real VS Code: what Escape means there goes first, and what is cancelled is what the user means.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Bench, setUp, tearDown, withPicture } from "./bench";
import { GRID } from "./home";
import { PATIENCE } from "./patience";
import type { Window } from "./window";

const FILES = ["grid.py", "other.py", "third.py"];
const CURSORS = ".editor-group-container.active .editor-instance .cursors-layer .cursor";

describe("Escape and cancel in VS Code", { timeout: 600_000 * PATIENCE }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp((home) => FILES.forEach((name) => home.write(name, GRID)));
        await bench.window.openFile("grid.py");
        await bench.window.waitForIdle();
    });
    after(() => tearDown(bench));
    beforeEach(async () => {
        const { window } = bench;
        await window.openFile("grid.py");
        await window.command("File: Revert File");
        await window.waitForText(GRID);
        await window.dismissNotifications();
    });

    /** A rewrite of all of the file that ends only when it is cancelled. */
    async function rewriteForever(window: Window): Promise<void> {
        await window.selectAll();
        await window.ask("rename Grid to Mesh forever");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        await window.focus();
    }

    async function isStillBusy(window: Window): Promise<void> {
        await window.page.waitForTimeout(400);
        assert.equal(await window.page.locator("#specd\\.specd\\.specd\\.status .codicon-sync").count(), 1, "the rewrite goes on");
    }

    test("further cursors go first, then what was selected meanwhile, then the rewrite", withPicture(() => bench, async ({ window }) => {
        await rewriteForever(window);
        await window.press("Control+Home", "Shift+Alt+ArrowDown", "Shift+Alt+ArrowDown");
        await window.page.waitForFunction((cursors) => document.querySelectorAll(cursors).length === 3, CURSORS);
        await window.press("Escape");
        await window.page.waitForFunction((cursors) => document.querySelectorAll(cursors).length === 1, CURSORS);
        await isStillBusy(window);
        await window.press("Shift+ArrowDown");
        await window.waitForStatusBar(/\(\d+ selected\)/);
        await window.press("Escape");
        await window.waitForStatusBar(/Ln 2, Col 1(?! \()/);
        await isStillBusy(window);
        await window.press("Escape");
        await window.waitForStatus(/cancelled/);
    }));

    test("the lines that were asked for are selected no more, and their rewrite is cancelled, by one Escape", withPicture(() => bench, async ({ window }) => {
        await rewriteForever(window);
        await window.waitForStatusBar(/\(\d+ selected\)/);
        await window.press("Escape");
        await window.waitForStatus(/cancelled/);
        await window.waitForStatusBar(/Ln \d+, Col \d+(?! \()/);
    }));

    test("a message that pops up goes first, and so does a hint in the text", withPicture(() => bench, async ({ window }) => {
        await rewriteForever(window);
        await window.press("Control+Home");
        await window.command("specd: Clear the Instruction History");
        await window.page.waitForSelector(".notifications-toasts.visible .notification-toast");
        await window.focus();
        await window.press("Escape");
        await window.page.waitForSelector(".notifications-toasts:not(.visible)", { state: "attached" });
        await isStillBusy(window);
        await window.command("Set Selection Anchor");
        await window.focus();
        await window.press("Escape");
        await isStillBusy(window);
        await window.press("Escape");
        await window.waitForStatus(/cancelled/);
    }));

    test("one Escape cancels what the lightbulb began", withPicture(() => bench, async ({ window, home }) => {
        await window.restarted(() => home.machineSettings({ "specd.presets": { Forever: "rename Grid to Mesh forever" } }));
        await window.selectAll();
        await window.action("Rewrite: Forever");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        await window.focus();
        await window.press("Escape");
        await window.waitForStatus(/cancelled/);
        await window.restarted(() => home.machineSettings());
    }));

    test("cancel in a text that is not rewritten means the one that is, and says which it was", withPicture(() => bench, async ({ window }) => {
        await rewriteForever(window);
        await window.openFile("other.py");
        await window.press("Escape");
        await isStillBusy(window);
        await window.command("specd: Cancel the Rewrite");
        await window.waitForStatus(/specd: grid\.py: cancelled/);
    }));

    test("cancel in a text that is not rewritten asks which, where there are several; in one that is it means that one", withPicture(() => bench, async ({ window }) => {
        await rewriteForever(window);
        await window.openFile("other.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh forever");
        await window.waitForStatus(/2 rewrites/);
        await window.openFile("third.py");
        await window.command("specd: Cancel the Rewrite");
        const row = (text: string): string => `.quick-input-list .monaco-list-row:has-text("${text}")`;
        await window.page.waitForSelector(row("All 2 rewrites"));
        await window.press("Escape");
        await window.waitForStatus(/2 rewrites/);
        await window.command("specd: Cancel the Rewrite");
        await window.page.click(row("other.py"));
        await window.waitForStatus(/specd: (?!2 rewrites)/);
        await isStillBusy(window);
        await window.openFile("other.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh forever");
        await window.waitForStatus(/2 rewrites/);
        await window.openFile("grid.py");
        await window.command("specd: Cancel the Rewrite");
        await window.waitForStatus(/specd: (?!2 rewrites)/);
        await isStillBusy(window);
        await window.openFile("third.py");
        await window.command("specd: Cancel the Rewrite");
        await window.waitForStatus(/specd: other\.py: cancelled/);
    }));
});
