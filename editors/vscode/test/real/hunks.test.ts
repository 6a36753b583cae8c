// Taking hunks back in a real VS Code: what one undo takes after it, where it is refused, and at the end of a text.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Bench, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { PATIENCE } from "./patience";
import { HUNK, shown } from "./window";

const FILE = "grid.py";
const LAST_BUT_ONE = MESH.replace("corner(grid: Mesh)", "corner(grid: Grid)");

describe("hunks in VS Code", { timeout: 600_000 * PATIENCE }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp((home) => home.write("other.py", GRID));
        bench.home.write(FILE, GRID);
        await bench.window.openFile(FILE);
        await bench.window.waitForIdle();
    });
    after(() => tearDown(bench));
    beforeEach(async () => {
        const { window, home } = bench;
        home.write(FILE, GRID);
        await window.openFile(FILE);
        await window.command("File: Revert File");
        await window.waitForText(GRID);
        await window.dismissNotifications();
    });

    test("after Revert This Hunk one undo is one step, though the text was the rewrite's before", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh everywhere");
        await window.waitForText(MESH, "the new text", 60);
        await window.waitForStatus(/hunks, .* s \(/);
        await window.goTo(20);
        await window.command("specd: Revert This Hunk");
        await window.waitForText(LAST_BUT_ONE, "the last hunk taken back");
        await window.goTo(1);
        await window.page.keyboard.type("x");
        await window.waitForText(`x${LAST_BUT_ONE}`);
        await window.press("Control+z");
        await window.waitForText(LAST_BUT_ONE, "the text without what was typed", 5);
        await window.page.waitForTimeout(500);
        assert.equal(await window.text(), shown(LAST_BUT_ONE), "one undo took two steps");
        await window.press("Control+z");
        await window.waitForText(MESH, "all hunks", 5);
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text", 5);
    }));

    test("a hunk of a file that has become read-only is left, and it is said", withPicture(() => bench, async ({ window, home }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.waitForStatus(/hunks, .* s \(/);
        await window.goTo(20);
        chmodSync(join(home.work, FILE), 0o444);
        await window.command("specd: Revert This Hunk");
        await window.notification(/this file is read-only; make it writable first; nothing was changed/);
        assert.equal(await window.text(), shown(MESH));
        chmodSync(join(home.work, FILE), 0o644);
    }));

    test("an editor that is set read-only in mid-stream is what is said, and not that the text changed", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        await window.command("File: Set Active Editor Read-only in Session");
        await window.notification(/hunks? not applied|read-only/, 60);
        const told = await window.notification(/./);
        await window.command("File: Reset Active Editor Read-only in Session");
        assert.match(told, /VS Code did not make it; the editor may be read-only/);
    }));

    test("a folder that VS Code is told to take as read-only is, by a pattern of the workspace too", withPicture(() => bench, async ({ window, home }) => {
        mkdirSync(join(home.work, "locked"));
        home.write("locked/deep.py", GRID);
        await window.page.click('.explorer-folders-view .monaco-list-row[aria-label^="locked"]');
        await window.openFile("deep.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        home.machineSettings({ "files.readonlyInclude": { "locked/**": true } });
        await window.notification(/this file is read-only \(files\.readonlyInclude\)/, 60);
        home.machineSettings();
    }));

    test("lines that were deleted at the end of a text without a line end come back", withPicture(() => bench, async ({ window, home }) => {
        home.write("end.py", "a = 1\nb = 2\nc = 3");
        await window.openFile("end.py");
        await window.selectAll();
        await window.ask("remove the last line");
        await window.waitForText("a = 1\nb = 2", "the text without the last line");
        await window.waitForStatus(/1 hunk, .* s \(/);
        await window.goTo(1);
        await window.command("specd: Next Hunk");
        await window.waitForStatusBar(/Ln 2, /);
        await window.command("specd: Revert This Hunk");
        await window.waitForText("a = 1\nb = 2\nc = 3", "the last line again");
        await window.focus();
        await window.press("Control+s");
        await home.waitFor("end.py", "a = 1\nb = 2\nc = 3");
    }));

    test("the button of a message takes back the rewrite that it tells of, also from another text", withPicture(() => bench, async ({ window }) => {
        await window.openFile("other.py");
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.openFile(FILE);
        await window.selectAll();
        await window.ask("break it");
        await window.notification(/pars|syntax/);
        await window.openFile("other.py");
        await window.page.click(".notification-list-item :text('Revert')");
        await window.waitForStatus(/took 1 hunk back/);
        assert.equal(await window.text(), shown(MESH), "the other text was reverted");
        await window.openFile(FILE);
        await window.waitForText(GRID, "the old text");
    }));

    test("marks cost a rewrite of hundreds of hunks little", withPicture(() => bench, async ({ window, home }) => {
        const count = 600;
        const text = Array.from({ length: count }, (_, at) => `def f${at}(grid: Grid) -> int:\n    return ${at}\n\n`).join("");
        home.write("many.py", text);
        await window.openFile("many.py");
        const seconds = async (marks: boolean): Promise<number> => {
            home.machineSettings({ "specd.marks": marks });
            await window.page.waitForTimeout(1000); // it is seen by then
            await window.focus();
            const begin = Date.now();
            await window.ask("rename Grid to Mesh", "specd: Rewrite the Whole File with LLM...");
            await window.waitForStatus(/600 hunks, .* s \(/, 120);
            await window.command("File: Save");
            await home.waitFor("many.py", text.replaceAll("Grid", "Mesh"));
            await window.goTo(1);
            assert.equal((await window.lit(HUNK)) > 5, marks, "what is marked");
            await window.command("specd: Revert the Last Rewrite");
            await window.waitForStatus(/took 600 hunks back/, 120);
            return (Date.now() - begin) / 1000;
        };
        const [plain, marked] = [await seconds(false), await seconds(true)];
        console.log(`${count} hunks and back: ${plain} s without marks, ${marked} s with them`);
        assert.ok(marked < 2 * plain, `${marked} s with marks, ${plain} s without them`);
        home.machineSettings();
    }));

    test("the hover over a hunk has its old lines, and a link that brings them back", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.waitForStatus(/hunks, .* s \(/);
        await window.goTo(20);
        await window.command("Show or Focus Hover");
        await window.page.waitForSelector(".monaco-hover :text('def corner(grid: Grid)')");
        await window.page.click(".monaco-hover a:has-text('Revert')");
        await window.waitForText(LAST_BUT_ONE, "the last hunk taken back");
    }));

    test("what is being rewritten is seen in a high contrast theme too", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "workbench.colorTheme": "Default High Contrast" });
        await window.page.waitForSelector(".monaco-workbench.hc-black");
        await window.selectAll();
        await window.ask("rename Grid to Mesh carefully");
        await window.waitForText((text) => text.includes("class Mesh"), "the first hunk");
        const edges = await window.page.evaluate(() => {
            const styles = [...document.querySelectorAll(".editor-instance .view-overlays .cdr")].map((one) => getComputedStyle(one));
            return styles.filter((one) => one.borderLeftWidth === "2px" && !/, 0\)$/.test(one.borderLeftColor)).length;
        });
        assert.equal(edges, 21);
        await window.waitForText(MESH, "the new text");
        home.machineSettings();
        await window.page.waitForSelector(".monaco-workbench:not(.hc-black)");
    }));

    test("a link in the model's words is no link", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask("link");
        await window.notification(/look here/);
        assert.equal(await window.page.locator(".notification-list-item-message a").count(), 0);
    }));

    test("an instruction of several lines is kept while another tab is looked at", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.command("specd: Rewrite with LLM...");
        await window.page.waitForSelector(".quick-input-title:has-text('Rewrite')");
        await window.page.click('.quick-input-widget [aria-label="Write several lines"]');
        const box = window.page.frameLocator("iframe.webview").frameLocator("iframe").locator("textarea");
        await box.pressSequentially("rename Grid\nto Mesh");
        await window.openFile("other.py"); // in the panel's group
        await box.waitFor({ state: "detached" });
        await window.page.click('.tab:has-text("specd: instruction")');
        await box.waitFor();
        assert.equal(await box.inputValue(), "rename Grid\nto Mesh");
        await box.press("Control+Enter");
        await window.command("View: Close Editor");
        await window.page.waitForSelector(`.editor-group-container.active .tab.active[data-resource-name="${FILE}"]`);
        await window.waitForText(MESH, "the new text");
    }));

    test("what was offered for a text that has changed since is not done", withPicture(() => bench, async ({ window, home }) => {
        await window.goTo(11);
        await window.press("Shift+ArrowDown", "Control+.");
        const entry = window.page.locator(".action-widget :text('Rewrite: Simplify')").first();
        await entry.waitFor();
        home.write(FILE, `# one more line\n${GRID}`);
        await window.waitForText(`# one more line\n${GRID}`);
        await entry.click();
        await window.notification(/the text has changed since this was offered; ask again/);
    }));
});
