// Rewrites in a real VS Code. The tests run in this order, in one window; each leaves the file as it found it.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Bench, picture, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { PATIENCE } from "./patience";
import { promptTests } from "./promptTests";
import { undoTests } from "./undoTests";
import { HUNK, REGION, shown } from "./window";

const FILE = "grid.py";

describe("rewrites in VS Code", { timeout: 600_000 * PATIENCE }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp();
        bench.home.write(FILE, GRID);
        bench.home.write("other.py", "# nothing\n");
        await bench.window.openFile(FILE);
        await bench.window.waitForText(GRID);
    });
    after(() => tearDown(bench));
    beforeEach(async () => {
        const { window } = bench;
        await window.closePanel();
        await window.focus();
        bench.home.write(FILE, GRID);
        await window.command("File: Revert File");
        await window.waitForText(GRID);
        await window.dismissNotifications();
    });

    test("a rewrite by the command comes in steps, and one undo takes all of it back", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        const recorded = await window.record();
        await window.ask("rename Grid to Mesh everywhere");
        await window.waitForText(MESH, "the new text", 60);
        const seen = await recorded();
        const between = seen.filter((text) => text !== shown(GRID) && text !== shown(MESH));
        assert.ok(between.length >= 2, `${between.length} states between the old text and the new one`);
        for (const text of between) assert.equal(text.replaceAll("Mesh", "Grid"), shown(GRID));
        await window.waitForStatus(/hunks, .* s \(/);
        await window.goTo(1);
        await picture(bench, "hunks");
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text after one undo", 5);
        await window.press("Control+Shift+z");
        await window.waitForText(MESH, "the new text after one redo", 5);
    }));

    test("a selection is rewritten by the lightbulb's menu, and nothing outside of it", withPicture(() => bench, async ({ window }) => {
        await window.goTo(11);
        await window.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown");
        await window.press("Control+.");
        await window.page.waitForSelector(".action-widget :text('Rewrite: Simplify')");
        await picture(bench, "actions");
        await window.page.click(".action-widget :text('Rewrite: Simplify')");
        await window.waitForText(GRID.replace("Grid(n, n)", "Mesh(n, n)"), "the new lines");
    }));

    test("region and hunks are seen again after a look at another file", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.waitForLit(REGION, 21);
        await window.openFile("other.py");
        await window.waitForLit(REGION, 0);
        await window.openFile(FILE);
        await window.waitForLit(REGION, 21);
        await window.waitForStatus(/hunks, .* s \(/);
        await window.waitForLit(REGION, 0);
        await window.openFile("other.py");
        await window.waitForLit(HUNK, 0);
        await window.openFile(FILE);
        await window.waitForLit(HUNK, 4);
    }));

    test("a second rewrite of a text is refused while the first one runs", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.command("specd: Rewrite Again (Last Instruction)");
        await window.notification(/a rewrite of this document is under way; Escape in its text ends it/);
        await window.waitForText(MESH, "the new text", 60);
    }));

    test("Escape cancels: what is there stays, nothing follows, and revert takes it back", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.waitForStatus(/specd: .*%/);
        await window.goTo(1);
        await picture(bench, "progress");
        await window.press("Escape");
        await window.waitForStatus(/cancelled/);
        const text = await window.text();
        assert.notEqual(text, shown(MESH));
        await window.page.waitForTimeout(1500);
        assert.equal(await window.text(), text, "an edit came after the cancel");
        await window.command("specd: Revert the Last Rewrite");
        await window.waitForText(GRID, "the old text");
        await window.waitForStatus(/took \d+ hunks? back/);
    }));

    test("a click on the status item cancels", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.page.click("#specd\\.specd\\.specd\\.status");
        await window.waitForStatus(/cancelled/);
    }));

    test("the log has one line a rewrite, with where its time went", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        const log = await window.output("specd: Show Log", /job \S+ done: \d+ hunks, [\d.]+ s .* edits?, \d+ ms each/);
        assert.ok(!log.includes("self.width"), "the log has none of the text");
        await picture(bench, "log");
    }));

    test("hunks are marked; next, previous and revert of one go by them", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.goTo(1);
        await window.command("specd: Next Hunk");
        await window.waitForStatusBar(/Ln 12, Col 1/);
        await window.command("specd: Next Hunk");
        await window.waitForStatusBar(/Ln 16, Col 1/);
        await window.command("specd: Previous Hunk");
        await window.waitForStatusBar(/Ln 12, Col 1/);
        await window.command("specd: Revert This Hunk");
        await window.waitForText(MESH.replace("grid = Mesh", "grid = Grid"), "one hunk less", 5);
        await window.command("specd: Revert the Last Rewrite");
        await window.waitForText(GRID, "the old text");
    }));

    test("words in place of code, and no change, are told and change nothing", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("question: what is it");
        await window.notification(/What do you want/);
        await window.dismissNotifications();
        await window.selectAll();
        await window.ask("nothing");
        await window.notification(/the model changed nothing/);
        assert.equal(await window.text(), shown(GRID));
    }));

    test("what does not parse any more is a warning, whose button takes it back", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("break it");
        await window.notification(/pars|syntax/);
        await window.page.click(".notification-list-item :text('Revert')");
        await window.waitForText(GRID, "the old text");
    }));

    test("a hunk whose lines the user changed is a hint, which puts it in", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        await window.goTo(20);
        await window.press("End");
        await window.page.keyboard.type(" # mine");
        await window.notification(/1 of 4 hunks not applied/, 60);
        const text = await window.text();
        assert.ok(text.includes("def corner(grid: Grid) -> int: # mine"), "the user's line is kept");
        await window.focus();
        await window.press("Control+.");
        await window.page.click(".action-widget :text(\"Use specd's version\")");
        await window.waitForText(MESH, "specd's version");
    }));

    undoTests(() => bench);
    promptTests(() => bench);
});
