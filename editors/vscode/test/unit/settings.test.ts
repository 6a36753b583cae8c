import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DEFAULTS, needsRestart, readSettings, serverOptions } from "../../src/settings";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));

test("without settings the defaults hold, and nothing is complained of", () => {
    assert.deepEqual(readSettings(() => undefined), { settings: DEFAULTS, problems: [] });
});

test("a wrong value is named and its default stands in; the others hold", () => {
    const given: Record<string, unknown> = { review: "later", historySize: -1, presets: { a: "" }, path: "/opt/specd" };
    const { settings, problems } = readSettings((key) => given[key]);
    assert.deepEqual(settings, { ...DEFAULTS, path: "/opt/specd" });
    assert.deepEqual(
        problems.map((problem) => /specd\.(\w+) must be/.exec(problem)?.[1]),
        ["presets", "review", "historySize"],
    );
});

test("a wrong level of the trace is named too", () => {
    const problems = (level: string): string[] => readSettings((key) => (key === "trace.server" ? level : undefined)).problems;
    assert.match(problems("loud")[0] ?? "", /specd\.trace\.server must be off, messages, verbose/);
    assert.deepEqual(problems("verbose"), []);
});

test("every setting of the manifest has a description, and the default that the code has", () => {
    const properties = manifest.contributes.configuration.properties as Record<string, Record<string, unknown>>;
    for (const [name, property] of Object.entries(properties)) {
        assert.ok(property["description"] ?? property["markdownDescription"], name);
        const key = name.replace("specd.", "");
        if (key !== "trace.server") assert.deepEqual(property["default"], DEFAULTS[key as keyof typeof DEFAULTS], name);
    }
    const named = Object.keys(DEFAULTS).map((key) => `specd.${key}`);
    assert.deepEqual(Object.keys(properties).sort(), [...named, "specd.trace.server"].sort());
});

test("what a workspace that is not trusted may not set is what starts a program or loads a model", () => {
    const { restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
    assert.deepEqual(restrictedConfigurations, ["specd.path", "specd.args", "specd.model"]);
});

test("a review of hunks is the server's to do", () => {
    assert.equal(serverOptions({ ...DEFAULTS, review: "hunks" })["review"], "hunks");
});

test("empty presets and an empty model are left to the daemon's settings", () => {
    assert.deepEqual(serverOptions(DEFAULTS), { warm: true, applyTimeout: 3 });
    const given = serverOptions({ ...DEFAULTS, model: "m", presets: { Types: "add types" } });
    assert.deepEqual([given["model"], given["presets"]], ["m", { Types: "add types" }]);
});

test("the server starts anew for what it is told at its start, and for nothing else", () => {
    assert.equal(needsRestart(DEFAULTS, { ...DEFAULTS, historySize: 3, marks: false }), false);
    for (const change of [{ path: "x" }, { args: [] }, { model: "m" }, { review: "hunks" as const }, { warm: false }]) {
        assert.equal(needsRestart(DEFAULTS, { ...DEFAULTS, ...change }), true);
    }
});

test("the extension's version is the project's", () => {
    const project = /^version = "(.*)"$/m.exec(readFileSync("../../pyproject.toml", "utf8"))?.[1];
    assert.equal(manifest.version, project);
});
