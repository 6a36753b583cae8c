// What is refused, and what settings change, in a real VS Code; at the end the bundled model in place of the replay.

import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Bench, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { PATIENCE } from "./patience";
import { shown } from "./window";

const FILE = "grid.py";

describe("settings and refusals in VS Code", { timeout: 600_000 * PATIENCE }, () => {
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
        await window.action("Rewrite: Use meshes");
        await window.waitForText(MESH, "the new text");
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
    }));

    test("what was asked is offered again by the lightbulb, until it is forgotten", withPicture(() => bench, async ({ window }) => {
        await window.openFile(FILE);
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
        await window.selectAll();
        await window.offered("Rewrite again: rename Grid to Mesh");
        await window.press("Escape");
        await window.command("specd: Clear the Instruction History");
        await window.notification(/the instructions you asked before are forgotten/);
        await window.dismissNotifications();
        await window.selectAll();
        await window.offered("Rewrite with LLM"); // whatever the presets are, which another test may have set
        assert.equal(await window.page.locator(".action-widget :text('Rewrite again')").count(), 0);
        await window.press("Escape");
    }));

    test("a command that is not there is said, with what to do", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "specd.path": "/nowhere/specd" });
        await window.notification(/"\/nowhere\/specd" was not found; install specd \(pip install \. in a clone of it\)/);
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

    test("the trace has the times of each part, and none of the text", withPicture(() => bench, async ({ window }) => {
        await window.openFile(FILE);
        await window.command("Developer: Set Log Level...");
        const row = (text: string): string => `.quick-input-list .monaco-list-row:has-text("${text}")`;
        await window.page.waitForSelector(".quick-input-widget input[placeholder='Set Log Level']");
        await window.page.keyboard.type("specd trace");
        await window.page.waitForSelector(`${row("specd trace")}.focused`);
        await window.press("Enter");
        await window.page.waitForSelector(row("Warning"));
        await window.page.click(row("Trace"));
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        const trace = await window.output("specd: Show Trace", /first hunk received at \d+ +ms, .*apply at \d+ ms/);
        assert.ok(!trace.includes("self.width"), "the trace has none of the text");
        await window.closePanel();
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text");
    }));

    test("what VS Code itself was told to take as read-only is not offered a rewrite", withPicture(() => bench, async ({ window }) => {
        await window.command("File: Set Active Editor Read-only in Session");
        await window.focus();
        await window.selectAll();
        await window.press("Control+k", "Control+e");
        await window.page.waitForTimeout(500);
        assert.equal(await window.page.locator(".quick-input-title:has-text('Rewrite')").count(), 0);
        await window.press("Control+.");
        await window.page.waitForTimeout(500);
        assert.equal(await window.page.locator(".action-widget :text('Rewrite')").count(), 0);
        await window.command("File: Reset Active Editor Read-only in Session");
    }));

    test("line ends, a byte order mark and characters of any width stay as they are on the disk", withPicture(() => bench, async ({ window, home }) => {
        const texts = { "crlf.py": GRID.replaceAll("\n", "\r\n"), "marked.py": `\ufeff${GRID}`, "wide.py": `# \u{1f600} e\u0301 Grid\n${GRID}# \u{1f600}Grid` };
        for (const [name, text] of Object.entries(texts)) {
            home.write(name, text);
            await window.openFile(name);
            await window.selectAll();
            await window.ask("rename Grid to Mesh");
            await window.waitForText((now) => now.includes("class Mesh") && !now.includes("Grid"), "the new text");
            await window.focus();
            await window.press("Control+s");
            await home.waitFor(name, text.replaceAll("Grid", "Mesh"));
        }
    }));

    test("a file that is renamed in mid-stream keeps its whole lines, and it is said", withPicture(() => bench, async ({ window, home }) => {
        home.write("before.py", GRID);
        await window.openFile("before.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        renameSync(join(home.work, "before.py"), join(home.work, "after.py"));
        await window.waitForStatus(/hunks, .* s \(|cancelled \(the document was closed\)/, 60);
        const text = await window.text();
        assert.equal(text.replaceAll("Mesh", "Grid"), shown(GRID));
        await window.command("File: Revert File");
    }));

    test("the bundled model rewrites the sample", { timeout: 300_000 * PATIENCE }, withPicture(() => bench, async ({ window, home }) => {
        home.bundled();
        await window.command("specd: Open a Sample");
        const before = await window.waitForText((text) => text.includes("def square(side: int) -> Grid:"), "the sample");
        await window.selectAll();
        await window.waitForIdle();
        await window.ask("rename Grid to Mesh");
        const outcome = await window.waitForStatus(/hunks?, .* s \(|changed|stay|error/, 240);
        const after = await window.text();
        assert.ok(after.includes("class Mesh:"), `the model's rewrite, and not: ${outcome}\n${after}`);
        assert.ok(after.includes("def square(side: int) -> "), "the rest is there");
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(before, "the sample after one undo");
    }));

    test("the walkthrough's links lead to a first rewrite, by the bundled model", withPicture(() => bench, async ({ window }) => {
        await window.command("Welcome: Open Walkthrough...");
        await window.page.waitForSelector(".quick-input-list .monaco-list-row");
        await window.page.keyboard.type("Rewrite code with specd");
        await window.page.click(".quick-input-list .monaco-list-row:has-text('Rewrite code with specd')");
        await window.page.click(".getting-started-step :text('Is it there?')");
        await window.notification(/the language server .* runs/);
        await window.dismissNotifications();
        await window.page.click(".getting-started-step:has-text('Rewrite something')");
        await window.page.click(".getting-started-step :text('Open a sample')");
        await window.page.waitForSelector(".editor-group-container.active .tab.active[data-resource-name^='Untitled']");
        await window.page.click(".getting-started-step :text('Rewrite with LLM')");
        await window.page.waitForSelector(".quick-input-title:has-text('Rewrite lines 1-18 of Untitled')");
        await window.page.keyboard.type("rename Grid to Mesh");
        await window.press("Enter");
        await window.page.waitForSelector(".view-line:has-text('class Mesh')");
    }));
});
