// Undo in a real VS Code: one step where nothing else happened, and the order of time where something did.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bench, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { shown } from "./window";

/** These run in the window of `rewrite.test.ts`, in its file `grid.py`, which holds GRID. */
export function undoTests(bench: () => Bench): void {
    test("what is typed meanwhile is kept, and undo goes back in the order of time", withPicture(bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.goTo(1);
        await window.page.keyboard.type("# mine", { delay: 120 });
        await window.press("Enter");
        await window.waitForText(`# mine\n${MESH}`, "both changes", 60);
        const steps = [await window.text()];
        while (steps.length < 30 && steps[0] !== shown(GRID)) {
            await window.focus();
            await window.press("Control+z");
            await window.page.waitForTimeout(250);
            steps.unshift(await window.text());
        }
        assert.equal(steps[0], shown(GRID), "undo comes back to the old text");
        for (const [index, text] of steps.slice(0, -1).entries()) {
            const hunks = (text: string): number => text.split("Mesh").length;
            const typed = (text: string): number => /^(# ?m?i?n?e?\n?)?/.exec(text)?.[0].length ?? 0;
            const next = steps[index + 1] ?? "";
            const both = hunks(next) !== hunks(text) && typed(next) !== typed(text);
            assert.ok(!both, `one undo took typing and hunks:\n${next}\n->\n${text}`);
        }
    }));

    test("saves in mid-stream, and a look elsewhere, leave it one undo and one redo", withPicture(bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        await window.focus();
        await window.press("Control+s");
        await window.openFile("other.py");
        await window.waitForStatus(/hunks, .* s \(/);
        await window.openFile("grid.py");
        await window.waitForText(MESH, "the new text");
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text after one undo", 5);
        await window.press("Control+Shift+z");
        await window.waitForText(MESH, "the new text after one redo", 5);
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text again", 5);
    }));

    test("typing after a rewrite is undone without it", withPicture(bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.waitForStatus(/hunks/);
        await window.goTo(1);
        await window.page.keyboard.type("x");
        await window.press("Control+z");
        await window.waitForText(MESH, "the new text without the typing", 5);
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text", 5);
    }));
}
