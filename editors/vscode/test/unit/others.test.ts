import assert from "node:assert/strict";
import { test } from "node:test";
import { expand, find, isOffLimits, type Machine, whyNoCommand } from "../../src/executable";
import { shownOf, shownOfRevert } from "../../src/outcomes";
import { asLabel, asMessage } from "../../src/plain";
import { Running } from "../../src/progress";
import { isActionArgument, type RewriteResult } from "../../src/protocol";

function machine(files: string[], more: Partial<Machine> = {}): Machine {
    return {
        env: { PATH: "/usr/bin:/opt/bin", TOOLS: "/tools" },
        home: "/home/me",
        folder: "/project",
        folders: ["/project", "/other"],
        isTrusted: true,
        isExecutable: (file) => files.includes(file),
        kindOf: (file) => (file === "/x/folder" ? "folder" : file === "/project/text" ? "file" : undefined),
        isWindows: false,
        ...more,
    };
}

test("a name is looked up on the PATH, in its order", () => {
    assert.equal(find("specd", machine(["/opt/bin/specd", "/usr/bin/specd"])), "/usr/bin/specd");
    assert.equal(find("specd", machine(["/project/specd"])), undefined);
});

test("it is said why a command is none", () => {
    assert.match(whyNoCommand("/x/folder", machine([])), /is a folder/);
    assert.match(whyNoCommand("./text", machine([])), /may not be run/);
    assert.match(whyNoCommand("/x/nowhere", machine([])), /was not found/);
    assert.match(whyNoCommand("text", machine([])), /was not found/);
});

test("a path is taken as it is, or from the workspace's folder", () => {
    assert.equal(find("/x/specd", machine(["/x/specd", "/usr/bin/specd"])), "/x/specd");
    assert.equal(find(".venv/bin/specd", machine(["/project/.venv/bin/specd"])), "/project/.venv/bin/specd");
    assert.equal(find("./specd", machine(["./specd", "specd"], { folder: undefined })), undefined);
    assert.equal(find("~/bin/specd", machine(["/home/me/bin/specd"])), "/home/me/bin/specd");
});

test("variables of a setting are filled in", () => {
    assert.equal(expand("${workspaceFolder}/a ${env:TOOLS} ${userHome} ${env:NONE}", machine([])), "/project/a /tools /home/me ");
    assert.equal(expand("${workspaceFolder}/a", machine([], { folder: undefined })), "${workspaceFolder}/a");
});

test("a name is not looked up in folders that depend on where a program is started", () => {
    assert.equal(find("specd", machine(["specd", "bin/specd", "/opt/bin/specd"], { env: { PATH: ".:bin::/opt/bin" } })), "/opt/bin/specd");
});

test("a program of a workspace's is off limits unless that is trusted", () => {
    const untrusted = machine([], { isTrusted: false });
    const files = ["/project/.venv/bin/specd", "/other/specd", "/projects/specd", "/opt/..bin/specd", "/usr/bin/specd"];
    assert.deepEqual(files.map((file) => isOffLimits(file, untrusted)), [true, true, false, false, false]);
    assert.equal(isOffLimits("/project/..bin/specd", untrusted), true);
    assert.equal(isOffLimits("/project/.venv/bin/specd", machine([])), false);
    const windows = machine([], { folders: ["c:\\work"], isTrusted: false, isWindows: true });
    assert.deepEqual(["C:\\work\\specd.exe", "D:\\work\\specd.exe"].map((file) => isOffLimits(file, windows)), [true, false]);
});

test("on Windows a name has the endings of PATHEXT", () => {
    const windows = machine(["C:\\bin\\specd.EXE"], { env: { Path: "C:\\bin", PATHEXT: ".COM;.EXE" }, isWindows: true });
    assert.equal(find("specd", windows), "C:\\bin\\specd.EXE");
});

const result = (more: Partial<RewriteResult>): RewriteResult => ({
    job: "1-1",
    outcome: "done",
    severity: "info",
    message: "5 hunks, 0.9 s (212 lines, 3.1k tok/s, 87 % drafted)",
    hunks: 5,
    conflicts: [],
    ...more,
});

test("a rewrite that went well, or that was cancelled, is told in the status bar", () => {
    assert.equal(shownOf(result({})).level, "status");
    const left = "3 hunks, 0.9 s (212 lines); you left 2 hunks out";
    assert.equal(shownOf(result({ message: left })).level, "status");
    assert.equal(shownOf(result({ outcome: "cancelled" })).level, "status");
});

test("no change is a message, since nothing else shows that it is over", () => {
    const shown = shownOf(result({ outcome: "no_change", message: "the model changed nothing", hunks: 0 }));
    assert.deepEqual([shown.level, shown.canRevert], ["info", false]);
});

test("how grave an outcome is, is the server's to say, whatever outcome it is; what can be taken back says so", () => {
    for (const outcome of ["done", "no_change", "conflict", "declined", "truncated", "cancelled"] as const) {
        const shown = shownOf(result({ outcome, severity: "warning", message: "words" }));
        assert.deepEqual([shown.level, shown.canRevert], ["warning", true], outcome);
    }
    for (const outcome of ["refused", "error"] as const) {
        const shown = shownOf(result({ outcome, severity: "error", message: "words", hunks: 0 }));
        assert.deepEqual([shown.level, shown.canRevert], ["error", false], outcome);
    }
});

test("a revert that left something is a warning", () => {
    assert.equal(shownOfRevert({ reverted: 2, refused: ["16"], message: "m" }).level, "warning");
    assert.equal(shownOfRevert({ reverted: 2, refused: [], message: "m" }).level, "status");
    assert.equal(shownOfRevert({ reverted: 0, refused: [], message: "m" }).level, "info");
});

test("a job gets its name from the first region of its document, and keeps it", () => {
    const running = new Running();
    const [first, other] = [running.begin("a", "x"), running.begin("b", "y")];
    running.name("7-1", "b");
    running.name("7-2", "a");
    running.name("7-1", "a");
    running.name("7-3", "a");
    assert.deepEqual(["7-1", "7-2", "7-3"].map((name) => running.called(name)), [other, first, undefined]);
    running.end(other);
    assert.equal(running.called("7-1"), undefined);
    assert.deepEqual(running.of(undefined), [first]);
});

test("the status item tells the latest progress, and nothing of a former job", () => {
    const running = new Running();
    running.begin("a", "x");
    running.report({ kind: "report", message: "hunk 3 · 61 %" });
    assert.equal(running.text, "hunk 3 · 61 %");
    running.report({ kind: "end", message: "5 hunks" });
    assert.equal(running.text, "hunk 3 · 61 %");
    running.begin("b", "y");
    assert.equal(running.text, "2 rewrites · rewriting");
});

test("a job knows whether its text still has the selection that was there when it was asked for", () => {
    const running = new Running();
    const [first, other] = [running.begin("a", "x"), running.begin("b", "y")];
    let changes = 0;
    running.onChange = () => changes++;
    running.selected("a");
    running.selected("a");
    assert.deepEqual([first.isSelectionAsked, other.isSelectionAsked, changes], [false, true, 1]);
});

test("words of others are no links and no icons", () => {
    assert.equal(asMessage("see [this](command:a.b?%5B%5D), f[0](x)"), "see [this] (command:a.b?%5B%5D), f[0](x)");
    assert.equal(asMessage("[a](HTTPS://b) [a](file:///b)"), "[a] (HTTPS://b) [a] (file:///b)");
    assert.equal(asLabel("use $(document), not $(trash)"), "use \\$(document), not \\$(trash)");
});

test("only what the server's code actions carry is taken for their argument", () => {
    assert.equal(isActionArgument({ uri: "file:///a", instruction: "x" }), true);
    for (const other of [undefined, null, "file:///a", { fsPath: "/a" }, { uri: {}, instruction: "x" }]) {
        assert.equal(isActionArgument(other), false);
    }
});

test("a command is named as VS Code does", () => {
    const message = "cancelled; 1 hunk applied so far stays (specd.revert takes it back)";
    const { text } = shownOf(result({ outcome: "cancelled", message }));
    assert.equal(text, "specd: cancelled; 1 hunk applied so far stays (Revert the Last Rewrite takes it back)");
});

test("a rewrite that waits for the user's choice says so, one that does not as well", () => {
    const running = new Running();
    const job = running.begin("file:///a", "x");
    running.sent(job);
    running.reviewed("file:///a", true);
    assert.equal(running.text, "waiting for your choice in the Refactor Preview");
    running.begin("file:///b", "x");
    assert.equal(running.text, "2 rewrites · rewriting");
    running.reviewed("file:///b", true);
    assert.match(running.text, /^2 rewrites · waiting/);
    running.reviewed("file:///a", false);
    assert.ok(!running.isReviewed);
});
