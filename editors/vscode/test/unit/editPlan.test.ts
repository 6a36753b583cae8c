import assert from "node:assert/strict";
import { test } from "node:test";
import { isReviewed, planOf, UndoSteps } from "../../src/editPlan";

const range = { start: { line: 1, character: 0 }, end: { line: 2, character: 0 } };
const edit = { range, newText: "new\n" };
const document = (uri: string) => ({ textDocument: { uri, version: 4 }, edits: [edit] });

test("an edit of one document keeps its version and its edits", () => {
    const plan = planOf({ edit: { documentChanges: [document("file:///a")] } });
    assert.deepEqual(plan, { uri: "file:///a", version: 4, edits: [edit] });
});

test("plain changes have no version", () => {
    assert.deepEqual(planOf({ edit: { changes: { "file:///a": [edit] } } }), { uri: "file:///a", version: null, edits: [edit] });
});

test("what is not an edit of one text is left to the client", () => {
    assert.equal(planOf({ edit: { documentChanges: [document("file:///a"), document("file:///b")] } }), undefined);
    assert.equal(planOf({ edit: { documentChanges: [{ kind: "create", uri: "file:///a" }] } }), undefined);
    assert.equal(planOf({ edit: { documentChanges: [] } }), undefined);
    assert.equal(planOf({ edit: { changes: { "file:///a": [edit], "file:///b": [edit] } } }), undefined);
    const snippet = { range, snippet: { kind: "snippet" as const, value: "$1" } };
    assert.equal(planOf({ edit: { documentChanges: [{ ...document("file:///a"), edits: [snippet] }] } }), undefined);
});

test("an edit that the user is asked about is known by its annotations", () => {
    const changeAnnotations = { a: { label: "hunk 1", needsConfirmation: true } };
    const annotated = { ...document("file:///a"), edits: [{ ...edit, annotationId: "a" }] };
    assert.ok(isReviewed({ edit: { documentChanges: [annotated], changeAnnotations } }));
    assert.ok(!isReviewed({ edit: { documentChanges: [document("file:///a")] } }));
});

test("edits with nothing between them are one undo step", () => {
    const undo = new UndoSteps();
    undo.begin("a");
    assert.equal(undo.needsStop("a", 7), true);
    undo.made("a", 8);
    assert.equal(undo.needsStop("a", 8), false);
    undo.made("a", 9);
    assert.equal(undo.needsStop("a", 9), false);
});

test("an edit after somebody typed begins a step of its own", () => {
    const undo = new UndoSteps();
    undo.made("a", 8);
    assert.equal(undo.needsStop("a", 9), true);
});

test("a second rewrite begins a step of its own, also right after the first", () => {
    const undo = new UndoSteps();
    undo.made("a", 8);
    undo.begin("a");
    assert.equal(undo.needsStop("a", 8), true);
});

test("documents do not mix", () => {
    const undo = new UndoSteps();
    undo.made("a", 8);
    assert.equal(undo.needsStop("b", 8), true);
    undo.made("b", 8);
    undo.begin("b");
    assert.equal(undo.needsStop("a", 8), false);
});

test("whatever comes after all have begun anew is a step of its own", () => {
    const undo = new UndoSteps();
    undo.made("a", 8);
    undo.beginAll();
    assert.equal(undo.needsStop("a", 8), true);
});
