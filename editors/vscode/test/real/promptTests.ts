// The ways to ask in a real VS Code: the prompt, several lines, a comment, the lightbulb.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bench, picture, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { shown } from "./window";

/** These run in the window of `rewrite.test.ts`, in its file `grid.py`, which holds GRID. */
export function promptTests(bench: () => Bench): void {
    test("a look at the text does not close the prompt, and its lines are found after typing above", withPicture(bench, async ({ window }) => {
        await window.goTo(11);
        await window.press("Shift+ArrowDown", "Shift+ArrowDown");
        await window.command("specd: Rewrite with LLM...");
        await window.page.waitForSelector(".quick-input-title:has-text('Rewrite lines 11-12 of grid.py')");
        await window.page.keyboard.type("rename Grid ");
        await window.goTo(1);
        await window.page.keyboard.type("# mine\n");
        await window.page.click(".quick-input-widget input[type=text]");
        await window.press("End");
        await window.page.keyboard.type("to Mesh");
        await window.press("Enter");
        await window.waitForText(`# mine\n${GRID.replace("Grid(n, n)", "Mesh(n, n)")}`, "the new line");
    }));

    test("the prompt offers what was asked before and presets; Escape leaves without a trace", withPicture(bench, async ({ window }) => {
        await window.selectAll();
        await window.command("specd: Rewrite with LLM...");
        const list = window.page.locator(".quick-input-list");
        await list.locator("text=rename Grid to Mesh").first().waitFor();
        await list.locator("text=Add type annotations").first().waitFor();
        await picture(bench(), "prompt");
        await window.press("Escape");
        await window.page.waitForSelector(".quick-input-widget", { state: "hidden" });
        assert.equal(await window.text(), shown(GRID));
        await window.focus();
        await window.command("specd: Rewrite Again (Last Instruction)");
        await window.waitForText((text) => text.includes("Mesh"), "the last instruction again");
    }));

    test("Enter right behind the text runs the text, and not what the list has like it", withPicture(bench, async ({ window, home }) => {
        await window.selectAll();
        await window.ask("break it now");
        await window.notification(/pars|syntax/);
        await window.command("specd: Revert the Last Rewrite");
        await window.waitForText(GRID, "the old text");
        await window.selectAll();
        await window.ask("nothing");
        await window.notification(/the model changed nothing/);
        await window.selectAll();
        await window.command("specd: Rewrite with LLM...");
        await window.page.waitForSelector(".quick-input-list .monaco-list-row:has-text('break it now')");
        await home.whileWaiting(home.extensionHosts(), async () => {
            await window.page.keyboard.insertText("it now"); // which is in the line of "break it now"
            await window.press("Enter");
        });
        await window.waitForText(MESH, "what the text asks for");
    }));

    test("a line that the user has moved to is run, also if the server's offers come after that", withPicture(bench, async ({ window, home }) => {
        const focused = (text: string): Promise<unknown> =>
            window.page.waitForSelector(`.quick-input-list .monaco-list-row.focused[aria-label^="${text}"]`);
        await window.selectAll();
        await window.ask("nothing");
        await window.notification(/the model changed nothing/);
        await window.dismissNotifications();
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
        await window.selectAll();
        await home.whileWaiting(home.languageServers(), async () => {
            await window.command("specd: Rewrite with LLM...");
            await focused("rename Grid to Mesh");
            await window.press("ArrowDown");
            await focused("nothing");
        });
        await window.page.waitForSelector(".quick-input-list .monaco-list-row:has-text('Add type annotations')");
        await focused("nothing");
        await window.press("Enter");
        await window.notification(/the model changed nothing/);
        assert.equal(await window.text(), shown(MESH));
    }));

    test("an instruction may have several lines", withPicture(bench, async ({ window }) => {
        await window.selectAll();
        await window.command("specd: Rewrite with LLM...");
        await window.page.waitForSelector(".quick-input-title:has-text('Rewrite')");
        await window.page.keyboard.type("rename Grid to Mesh");
        await window.page.click('.quick-input-widget [aria-label="Write several lines"]');
        const box = window.page.frameLocator("iframe.webview").frameLocator("iframe").locator("textarea");
        await box.waitFor();
        assert.equal(await box.inputValue(), "rename Grid to Mesh");
        await box.press("Enter");
        await box.pressSequentially("and keep the rest");
        await picture(bench(), "lines");
        await box.press("Control+Enter");
        await window.waitForText(MESH, "the new text");
    }));

    test("a comment that asks is offered, and goes with the edit", withPicture(bench, async ({ window }) => {
        await window.goTo(11);
        await window.press("Home");
        await window.page.keyboard.type("# specd: rename Grid to Mesh\n");
        await window.goTo(13);
        await window.press("Control+.");
        await window.page.click(".action-widget :text('Rewrite with LLM: rename Grid to Mesh')");
        await window.waitForText(GRID.replace("Grid(n, n)", "Mesh(n, n)"), "the rewrite, without the comment");
    }));

    test("the lightbulb asks for an instruction too, for the lines that were selected", withPicture(bench, async ({ window }) => {
        await window.goTo(11);
        await window.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown", "Control+.");
        await window.page.click(".action-widget :text('Rewrite with LLM…')");
        await window.page.waitForSelector(".quick-input-title:has-text('Rewrite lines 11-13 of grid.py')");
        await window.page.keyboard.type("rename Grid to Mesh");
        await window.press("Enter");
        await window.waitForText(GRID.replace("Grid(n, n)", "Mesh(n, n)"), "the new lines");
    }));
}
