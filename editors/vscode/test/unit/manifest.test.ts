// What the manifest promises of commands, menus and keys.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

interface Entry {
    command: string;
    key?: string;
    when?: string;
    enablement?: string;
    args?: unknown;
}

const { commands, menus, keybindings, walkthroughs } = JSON.parse(readFileSync("package.json", "utf8")).contributes as {
    commands: Entry[];
    menus: Record<string, Entry[]>;
    keybindings: Entry[];
    walkthroughs: unknown;
};
const onEscape = keybindings.filter(({ key }) => key === "escape").map(({ when = "" }) => when);

// VS Code 1.139, Preferences: Open Default Keyboard Shortcuts (JSON): what Escape means while the keyboard is in a text.
const ESCAPE = [
    ...["editorHasMultipleSelections", "suggestWidgetVisible", "parameterHintsVisible", "findWidgetVisible", "renameInputVisible"],
    ...["inSnippetMode", "inlineSuggestionVisible", "inlineEditIsVisible", "inInlineEditsPreviewEditor", "LinkedEditingInputVisible"],
    ...["markersNavigationVisible", "dirtyDiffVisible", "editorHoverVisible", "messageVisible", "pasteWidgetVisible"],
    ...["dropWidgetVisible", "standaloneColorPickerVisible", "breakpointWidgetVisible", "exceptionWidgetVisible"],
    ...["cancellableOperation", "hasSymbols", "selectionAnchorSet", "isReadingLineWithInlayHints", "stickyScrollFocused"],
    ...["inlineChatVisible", "inlineChatAffordanceVisible", "commentEditorFocused", "commentFocused", "editorPartModal"],
    ...["inQuickOpen", "inQuickInput", "notificationCenterVisible", "inReferenceSearchEditor", "referenceSearchVisible"],
    ...["callHierarchyVisible", "typeHierarchyVisible", "testing.isInPeek", "testing.isPeekVisible"],
];

test("Escape first does what VS Code means by it", () => {
    assert.equal(onEscape.length, 2);
    for (const when of onEscape) {
        for (const name of ESCAPE) assert.ok(when.split(/[\s()]+/).includes(`!${name}`), `${name} in ${when}`);
    }
});

test("Escape takes a selection or a message away together with the rewrite only where these are the rewrite's own", () => {
    const [alone = "", together = ""] = onEscape;
    for (const name of ["!editorHasSelection", "!notificationToastsVisible"]) assert.ok(alone.endsWith(name) || alone.includes(`${name} `));
    assert.ok(together.includes("(!editorHasSelection || specd.askedSelection)"));
    assert.ok(together.includes("(!notificationToastsVisible || specd.starting)"));
});

test("what changes a text is not offered where it may not be changed", () => {
    for (const { command, when, enablement } of [...(menus["editor/context"] ?? []), ...commands]) {
        if (!/^specd\.(rewrite|rewriteFile|again|revertHunk)$/.test(command)) continue;
        assert.ok((when ?? enablement ?? "").includes("!editorReadonly"), command);
    }
});

test("every command of a menu, a key or the walkthrough is one that the manifest has", () => {
    const known = new Set(commands.map(({ command }) => command));
    const used = [...JSON.stringify([menus, keybindings, walkthroughs]).matchAll(/specd\.[a-z]\w+/g)].map(([name]) => name);
    const context = new Set(["specd.busy", "specd.hasHunks", "specd.path", "specd.askedSelection", "specd.starting"]);
    for (const name of used) assert.ok(known.has(name) || context.has(name), name);
});
