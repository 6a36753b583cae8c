// A workspace that the user does not trust: rewrites work, and which program runs is not the workspace's to say.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Bench, setUp, tearDown, withPicture } from "./bench";
import { GRID, MESH } from "./home";
import { PATIENCE } from "./patience";

describe("Restricted Mode in VS Code", { timeout: 300_000 * PATIENCE }, () => {
    let bench: Bench;

    before(async () => {
        bench = await setUp((home) => {
            home.userSettings({
                "security.workspace.trust.enabled": true,
                "security.workspace.trust.startupPrompt": "never",
                "security.workspace.trust.untrustedFiles": "open",
                "specd.historySize": 0,
            });
            home.write("grid.py", GRID);
            mkdirSync(join(home.work, ".vscode"));
            home.write(".vscode/settings.json", JSON.stringify({ "specd.path": "/nowhere/else", "specd.args": ["x"] }));
        });
        await bench.window.openFile("grid.py");
    });
    after(() => tearDown(bench));

    test("rewrites work there, by the user's own command", withPicture(() => bench, async ({ window }) => {
        await window.waitForStatusBar(/Restricted Mode/);
        await window.selectAll();
        await window.ask("rename Grid to Mesh");
        await window.waitForText(MESH, "the new text");
    }));

    test("where no instruction is kept none is offered again", withPicture(() => bench, async ({ window }) => {
        await window.selectAll();
        await window.offered("Rewrite: Simplify");
        assert.equal(await window.page.locator(".action-widget :text('Rewrite again')").count(), 0);
        await window.press("Escape");
    }));

    test("a program that lies in the workspace is not run, though the user names it, until that is trusted", withPicture(() => bench, async ({ window, home }) => {
        const ran = join(home.folder, "ran");
        home.write("tool", `#!/bin/sh\necho >> ${ran}\nexec ${home.specd} "$@"\n`, 0o755);
        home.write(".vscode/settings.json", "{}");
        home.machineSettings({ "specd.path": "${workspaceFolder}/tool" });
        await window.notification(/tool` is in a workspace that you do not trust, and is not run\. Trust it, or name another one/);
        assert.ok(!existsSync(ran));
        await window.dismissNotifications();
        await window.command("Workspaces: Manage Workspace Trust");
        await window.page.click(".workspace-trust-editor a.monaco-button:has-text('Trust')");
        await window.waitForIdle();
        assert.ok(existsSync(ran));
    }));
});
