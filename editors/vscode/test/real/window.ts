// VS Code's window as a user has it: keys, the palette, menus, what is on the screen.

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { PATIENCE } from "./patience";

// Backgrounds of what is being rewritten, and of hunks, in the theme of the tests.
export const REGION = "rgba(253, 255, 0, 0.2)";
export const HUNK = "rgba(155, 185, 85, 0.2)";
const EDITOR = ".editor-group-container.active .editor-instance .monaco-editor";

export class Window {
    constructor(readonly page: Page) {}

    async open(address: string): Promise<void> {
        await this.page.goto(address);
        await this.page.waitForSelector(".monaco-workbench .statusbar", { timeout: 120_000 * PATIENCE });
        await this.page.waitForSelector("#specd\\.specd\\.specd\\.status", { timeout: 120_000 * PATIENCE });
    }

    async openFile(name: string): Promise<void> {
        await this.page.dblclick(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`);
        await this.page.waitForSelector(`.tab.active[data-resource-name="${name}"]`);
        await this.focus();
    }

    /** Put the keyboard into the text; a key is lost where VS Code is still busy with the one before. */
    async focus(): Promise<void> {
        const isFocused = (): Promise<boolean> =>
            this.page.evaluate((editor) => !!document.activeElement?.closest(`${editor}.focused`), EDITOR);
        for (let tries = 0; tries < 10; tries++) {
            await this.page.keyboard.press("Control+1");
            for (let waited = 0, seen = 0; waited < 3000; waited += 50) {
                seen = (await isFocused()) ? seen + 1 : 0;
                if (seen === 2) return; // it keeps it
                await this.page.waitForTimeout(50);
            }
        }
        assert.fail("the text does not take the keyboard");
    }

    /** Run a command by the palette. */
    async command(title: string): Promise<void> {
        await this.page.keyboard.press("F1");
        await this.type(".quick-input-widget input", `>${title}`);
        await this.page.click(`.quick-input-list .monaco-list-row[aria-label^="${title}"]`);
    }

    /** The prompt: run the command, wait for it, and answer it. */
    async ask(instruction: string, command = "specd: Rewrite with LLM..."): Promise<void> {
        await this.command(command);
        await this.page.waitForSelector(".quick-input-title:has-text('Rewrite')");
        await this.page.keyboard.type(instruction);
        await this.page.waitForSelector(`.quick-input-list .monaco-list-row.focused:has-text("${instruction}")`);
        await this.page.keyboard.press("Enter");
    }

    async selectAll(): Promise<void> {
        await this.move(["Control+Home", "Control+Shift+End"], /Ln \d+, Col \d+ \(\d+ selected\)/);
    }

    /** Take an entry of the lightbulb's menu. */
    async action(title: string): Promise<void> {
        await (await this.offered(title)).click();
    }

    /** The lightbulb's menu, opened, has an entry; right after the server's start the menu may be empty yet. */
    async offered(title: string): Promise<Locator> {
        const entry = this.page.locator(`.action-widget :text("${title}")`).first();
        for (let tries = 0; tries < 10; tries++) {
            await this.page.keyboard.press("Control+.");
            for (let waited = 0; waited < 3000; waited += 50) {
                if (await entry.isVisible()) return entry;
                await this.page.waitForTimeout(50);
            }
            await this.page.keyboard.press("Escape");
        }
        assert.fail(`the lightbulb does not offer ${title}`);
    }

    /** Put the cursor at the beginning of a line, which counts from 1. */
    async goTo(line: number): Promise<void> {
        await this.move(["Control+Home", ...Array<string>(line - 1).fill("ArrowDown")], RegExp(`Ln ${line}, Col 1(?! \\(|\\d)`));
    }

    /** Keys that move the cursor, until the status bar says where it should be. A text that has just got the keyboard may
     * lose the first of them. */
    private async move(keys: string[], place: RegExp): Promise<void> {
        let bar = "";
        for (let tries = 0; tries < 10; tries++) {
            await this.focus();
            await this.press(...keys);
            for (let waited = 0; waited < 1000 * PATIENCE; waited += 50) {
                bar = await this.page.locator(".statusbar").innerText();
                if (place.test(bar)) return;
                await this.page.waitForTimeout(50);
            }
        }
        assert.fail(`the cursor does not get to ${place}; the status bar says:\n${bar}`);
    }

    async press(...keys: string[]): Promise<void> {
        for (const key of keys) await this.page.keyboard.press(key);
    }

    /** The text on the screen, which has all lines of a short file. */
    async text(): Promise<string> {
        return this.page.evaluate(readLines, EDITOR);
    }

    async waitForText(wanted: string | ((text: string) => boolean), what = "the text", seconds = 30): Promise<string> {
        const holds = typeof wanted === "string" ? (text: string) => text === shown(wanted) : wanted;
        return this.until(what, () => this.text(), holds, seconds);
    }

    /** Every text that is on the screen until `stop` is called. */
    async record(): Promise<() => Promise<string[]>> {
        await this.page.evaluate(([read, editor]) => {
            const lines = new Function(`return (${read})`)() as (editor: string) => string;
            const seen: string[] = [];
            const look = (): void => {
                const text = lines(editor as string);
                if (seen[seen.length - 1] !== text) seen.push(text);
                state.timer = requestAnimationFrame(look);
            };
            const state = { seen, timer: 0 };
            (window as unknown as { specd: typeof state }).specd = state;
            look();
        }, [readLines.toString(), EDITOR]);
        return () =>
            this.page.evaluate(() => {
                const { seen, timer } = (window as unknown as { specd: { seen: string[]; timer: number } }).specd;
                cancelAnimationFrame(timer);
                return seen;
            });
    }

    /** How many lines on the screen have a background of this colour. */
    async lit(colour: string): Promise<number> {
        return this.page.evaluate(
            ([wanted, editor]) =>
                [...document.querySelectorAll(`${editor} .view-overlays .cdr`)].filter(
                    (one) => getComputedStyle(one).backgroundColor === wanted,
                ).length,
            [colour, EDITOR],
        );
    }

    async waitForLit(colour: string, count: number): Promise<void> {
        const read = async (): Promise<string> => String(await this.lit(colour));
        await this.until(`${count} lines of ${colour}`, read, (lines) => lines === String(count), 10);
    }

    async status(): Promise<string> {
        return (await this.page.locator("#specd\\.specd\\.specd\\.status").innerText()).trim();
    }

    async waitForStatus(pattern: RegExp, seconds = 30): Promise<string> {
        return this.until(`status ${pattern}`, () => this.status(), (text) => pattern.test(text), seconds);
    }

    /** The language server is ready, and nothing is told of an earlier rewrite any more. */
    async waitForIdle(): Promise<void> {
        await this.page.waitForSelector("#specd\\.specd\\.specd\\.status .codicon-pencil");
    }

    /** The language server stops and starts because of `cause`, which is done again where VS Code has not noticed it: soon
     * after its start it does not watch its settings yet. */
    async restarted(cause: () => void): Promise<void> {
        const loading = "#specd\\.specd\\.specd\\.status .codicon-loading";
        for (let tries = 0; tries < 6; tries++) {
            const isStarting = this.page.waitForSelector(loading, { timeout: 5000 * PATIENCE }).then(() => true, () => false);
            cause();
            if (await isStarting) return this.waitForIdle();
        }
        assert.fail("the language server does not start anew");
    }

    async waitForStatusBar(pattern: RegExp, seconds = 10): Promise<string> {
        const read = (): Promise<string> => this.page.locator(".statusbar").innerText();
        return this.until(`status bar ${pattern}`, read, (text) => pattern.test(text), seconds);
    }

    async notification(pattern: RegExp, seconds = 30): Promise<string> {
        const read = async (): Promise<string> =>
            (await this.page.locator(".notification-list-item-message").allInnerTexts()).join("\n");
        return this.until(`notification ${pattern}`, read, (text) => pattern.test(text), seconds);
    }

    async closePanel(): Promise<void> {
        const close = this.page.locator(".part.panel .action-label.codicon-panel-close, .part.panel .codicon-close").first();
        if (await close.isVisible()) await close.click();
        await this.page.waitForSelector(".part.panel", { state: "hidden" });
    }

    async dismissNotifications(): Promise<void> {
        await this.command("Notifications: Clear All Notifications");
        await this.page.waitForSelector(".notification-list-item-message", { state: "detached" });
    }

    /** What a channel of the output panel shows. */
    async output(command: string, pattern: RegExp, seconds = 30): Promise<string> {
        await this.command(command);
        const read = (): Promise<string> => this.page.evaluate(readLines, ".panel .output-view-content .monaco-editor, .panel .monaco-editor");
        const holds = (text: string): boolean => pattern.test(text.replaceAll("\n", " ")); // lines are wrapped
        return this.until(`output ${pattern}`, read, holds, seconds);
    }

    private async type(selector: string, text: string): Promise<void> {
        const input = this.page.locator(selector).first();
        await input.waitFor();
        await input.fill(text);
    }

    private async until(what: string, read: () => Promise<string>, holds: (text: string) => boolean, seconds: number): Promise<string> {
        const end = Date.now() + seconds * 1000 * PATIENCE;
        let text = await read();
        while (!holds(text)) {
            if (Date.now() > end) assert.fail(`waited ${seconds} s for ${what}; there is:\n${text}`);
            await this.page.waitForTimeout(50);
            text = await read();
        }
        return text;
    }
}

/** A file's text as the screen has it: without the line end at its end. */
export function shown(text: string): string {
    return text.replace(/\n$/, "");
}

/** Runs in the page: the lines are in no order there, and their spaces are no-break ones. */
function readLines(selector: string): string {
    const lines = [...(document.querySelector(selector)?.querySelectorAll<HTMLElement>(".view-line") ?? [])];
    lines.sort((one, other) => parseFloat(one.style.top) - parseFloat(other.style.top));
    return lines
        .map((line) => (line.textContent ?? "").replace(/\u00a0/g, " ").replace(/\u200b/g, ""))
        .join("\n")
        .replace(/\n+$/, "");
}
