// The language server's troubles, as a user of a real VS Code meets them: it does not start, it hangs, it dies.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Bench, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { PATIENCE } from "./patience";

const FILE = "grid.py";
const INSTRUCTION = "rename Grid to Mesh";

/** A language server that knows no more than how to begin and to end. */
const OTHER_SERVER = `#!${process.execPath}
let input = "";
process.stdin.on("data", (chunk) => {
    input += chunk;
    for (;;) {
        const [head, length] = /^Content-Length: (\\d+)\\r\\n\\r\\n/.exec(input) ?? [];
        if (head === undefined || input.length < head.length + Number(length)) return;
        const { id, method } = JSON.parse(input.slice(head.length, head.length + Number(length)));
        input = input.slice(head.length + Number(length));
        if (method === "exit") process.exit(0);
        const said = { jsonrpc: "2.0", id, ...known[method] ?? { error: { code: -32601, message: "what?" } } };
        if (id !== undefined) setTimeout(() => answer(said), method === "initialize" ? 700 : 0); // its start is to be seen
    }
});
const known = { initialize: { result: { capabilities: {}, serverInfo: { name: "otherls", version: "7" } } }, shutdown: { result: null } };
function answer(message) {
    const text = JSON.stringify(message);
    process.stdout.write("Content-Length: " + text.length + "\\r\\n\\r\\n" + text);
}
`;

describe("troubles of the language server in VS Code", { timeout: 600_000 * PATIENCE }, () => {
    let bench: Bench;
    let hanging: string;

    before(async () => {
        bench = await setUp((home) => {
            hanging = join(home.folder, "hanging");
            writeFileSync(hanging, "#!/bin/sh\nexec sleep 600\n", { mode: 0o755 });
            home.write(FILE, GRID);
            home.machineSettings({ "specd.path": hanging });
        });
        await bench.window.openFile(FILE);
        await bench.window.waitForText(GRID);
    });
    after(() => tearDown(bench));

    test("a rewrite that waits for its server is seen, and cancelled by Escape or by the button", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask(INSTRUCTION);
        await window.waitForStatus(/specd: starting/);
        await window.notification(/the language server is starting/);
        await window.focus();
        await window.press("Control+Home", "Escape");
        await window.waitForStatus(/cancelled; nothing was changed/);
        await window.selectAll();
        await window.ask(INSTRUCTION);
        await window.notification(/the language server is starting/);
        await window.page.click(".notifications-toasts :text('Cancel')");
        await window.waitForStatus(/cancelled; nothing was changed/);
        await window.waitForText(GRID);
    }));

    test("a server that does not answer is given up, and it is said what to do", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "specd.path": hanging, "specd.args": ["other"], "specd.startTimeout": 1 });
        await window.notification(/hanging other` did not answer within 1 s\. Try again, or raise specd\.startTimeout/);
        await window.page.waitForSelector(".notification-list-item :text('Try Again')");
        await window.dismissNotifications();
    }));

    test("a program that is no language server is said, with how it ended", withPicture(() => bench, async ({ window, home }) => {
        home.machineSettings({ "specd.path": "/bin/sh", "specd.args": ["-c", "echo no such option >&2; exit 2"] });
        await window.notification(/did not start as a language server, but ended with exit code 2: no such option\. Run it in a shell/);
        await window.dismissNotifications();
        await window.restarted(() => home.machineSettings());
    }));

    test("a server of another language is said when a rewrite is asked for", withPicture(() => bench, async ({ window, home }) => {
        const other = join(home.folder, "other");
        writeFileSync(other, OTHER_SERVER, { mode: 0o755 });
        await window.restarted(() => home.machineSettings({ "specd.path": other }));
        await window.selectAll();
        await window.ask(INSTRUCTION);
        await window.notification(/otherls 7 does not know rewrites: it is not specd's, or an older one\. See specd\.path/);
        await window.dismissNotifications();
        await window.restarted(() => home.machineSettings());
    }));

    test("a server that hangs in mid-stream is left by Escape, and another one is there", withPicture(() => bench, async ({ window, home }) => {
        await window.selectAll();
        await window.ask(`${INSTRUCTION} carefully`);
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        for (const pid of home.languageServers()) process.kill(pid, "SIGSTOP");
        await window.focus();
        await window.press("Control+Home", "Escape");
        await window.notification(/cancelled; the language server did not answer, and is started anew/);
        await window.dismissNotifications();
        await window.waitForIdle();
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text after one undo");
        for (let tries = 0; home.languageServers().length > 1 && tries < 100; tries++) await window.page.waitForTimeout(100);
        assert.equal(home.languageServers().length, 1, "the one that hangs is gone");
    }));

    test("a restart in mid-stream is said, and not that the server has gone", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.ask(`${INSTRUCTION} carefully`);
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        await window.command("specd: Restart the Language Server");
        await window.notification(/the language server was started anew; what it has changed so far stays, and undo takes it back/);
        await window.dismissNotifications();
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text after one undo");
        await window.waitForIdle();
    }));

    test("a server that is killed is said, its hunks stay, and the next one is there by itself", withPicture(() => bench, async ({ window, home }) => {
        await window.selectAll();
        await window.ask(`${INSTRUCTION} carefully`);
        await window.waitForText((text) => text.includes("Mesh"), "the first hunk");
        for (const pid of home.languageServers()) process.kill(pid, "SIGKILL");
        await window.notification(/the language server has gone; what it has changed so far stays, and undo takes it back/);
        await window.dismissNotifications();
        await window.focus();
        await window.press("Control+z");
        await window.waitForText(GRID, "the old text after one undo");
        await window.waitForIdle();
        await window.selectAll();
        await window.action("Rewrite: Simplify");
        await window.waitForText(MESH, "the new text");
    }));
});
