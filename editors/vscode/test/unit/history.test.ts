import assert from "node:assert/strict";
import { test } from "node:test";
import { oneLine, readHistory, remember } from "../../src/history";

test("the latest instruction is first, and there once", () => {
    assert.deepEqual(remember(["b", "a"], " a ", 20), ["a", "b"]);
});

test("no more than its size is kept, and nothing of size 0", () => {
    assert.deepEqual(remember(["b", "a"], "c", 2), ["c", "b"]);
    assert.deepEqual(remember(["b", "a"], "c", 0), []);
});

test("an empty instruction is not kept", () => {
    assert.deepEqual(remember(["a"], "  \n", 20), ["a"]);
});

test("what was kept is read, whatever it is", () => {
    assert.deepEqual(readHistory(undefined, 20), []);
    assert.deepEqual(readHistory({ a: 1 }, 20), []);
    assert.deepEqual(readHistory(["a", 3, "", "a", "b"], 20), ["a", "b"]);
});

test("an instruction of several lines is one line of a list", () => {
    assert.equal(oneLine("rename a\n  keep b\n"), "rename a ⏎ keep b");
});
