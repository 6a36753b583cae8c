// What is refused, and what settings change, in a real VS Code; at the end the bundled model in place of the replay.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Bench, picture, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { shown } from "./window";

const FILE = "grid.py";

describe("settings and refusals in VS Code", { timeout: 600_000 }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp();
        bench.home.write(FILE, GRID);
        bench.home.write("fixed.py", GRID, 0o444);
        await bench.window.openFile(FILE);
        await bench.window.waitForText(GRID);
    });
    after(() => tearDown(bench));

    test("a file that may not be written is refused, and is not changed", withPicture(() => bench, async ({ window, home }) => {
        await window.openFile("fixed.py");
        await window.press("Control+k", "Control+e");
        await window.notification(/this file is read-only; make it writable first/);
        await window.focus();
        await window.press("Control+.");
        await window.page.waitForSelector(":text('No code actions available'), .action-widget");
        assert.equal(await window.page.locator(".action-widget :text('Rewrite: ')").count(), 0);
        await window.press("Escape");
        assert.equal(await window.text(), shown(GRID));
        assert.equal(home.read("fixed.py"), GRID);
        await window.dismissNotifications();
    }));

    test("presets of the settings are offered in place of the daemon's", withPicture(() => bench, async ({ window, home }) => {
        await window.openFile(FILE);
        await window.restarted(() => home.machineSettings({ "specd.presets": { "Use meshes": "rename Grid to Mesh" } }));
        await window.selectAll();
        await window.press("Control+.");
        await window.page.click(".action-widget :text('Rewrite: Use meshes')");
        await window.waitForText(MESH, "the new text");
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
    }));

    test("in review by hunks nothing changes until the change is taken", withPicture(() => bench, async ({ window, home }) => {
        await window.restarted(() => home.machineSettings({ "specd.review": "hunks" }));
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        const apply = window.page.locator(".part.panel a.monaco-button:has-text('Apply')");
        await apply.waitFor();
        await picture(bench, "review");
        assert.ok(!(await window.text()).includes("Mesh"), "nothing has changed yet");
        await window.page.locator(".part.panel .monaco-list-row:has-text('n, n') .monaco-checkbox, .part.panel .monaco-list-row:has-text('n, n') input").first().click();
        await apply.click();
        await window.waitForStatus(/1 hunk, .* you left 3 hunks out/);
        await window.closePanel();
        await window.waitForText(GRID.replace("Grid(n, n)", "Mesh(n, n)"), "the hunk that was taken");
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
    }));

    test("a command that is not there is said, with what to do", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "specd.path": "/nowhere/specd" });
        await window.notification(/"\/nowhere\/specd" was not found; pip install specd/);
        await window.dismissNotifications();
        await window.restarted(() => home.machineSettings());
        await window.command("specd: Show Status");
        await window.notification(/the language server .* runs.*Daemon/);
        await window.dismissNotifications();
    }));

    test("a wrong setting is named", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "specd.marks": "sometimes" });
        await window.notification(/specd\.marks must be true or false/);
        home.machineSettings();
        await window.dismissNotifications();
    }));

    test("the bundled model rewrites the sample", { timeout: 300_000 }, withPicture(() => bench, async ({ window, home }) => {
        home.bundled();
        await window.command("specd: Open a Sample");
        const before = await window.waitForText((text) => text.includes("def square(side: int) -> Grid:"), "the sample");
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        const after = await window.waitForText((text) => text.includes("class Mesh:"), "the model's rewrite", 240);
        assert.ok(after.includes("def square(side: int) -> "), "the rest is there");
        await window.waitForStatus(/hunks?, .* s/, 120);
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(before, "the sample after one undo");
    }));
});
