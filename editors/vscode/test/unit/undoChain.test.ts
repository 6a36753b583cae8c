import assert from "node:assert/strict";
import { test } from "node:test";
import { type Direction, UndoChain } from "../../src/undoChain";

/** A chain of these texts of the document `a`, the text before the rewrite first. */
function chained(before: string, first: string, ...others: string[]): UndoChain {
    const chain = new UndoChain();
    chain.begin("a", before, first);
    for (const text of others) chain.add("a", text);
    return chain;
}

/** To which of the texts that an undo or a redo comes to it goes on. */
const goesOn = (chain: UndoChain, direction: Direction, ...texts: string[]): boolean[] =>
    texts.map((text) => chain.moved("a", direction, text));

test("an undo goes on between two edits of one rewrite, and so does a redo; both end at its ends", () => {
    const chain = chained("0", "1", "2", "3");
    assert.deepEqual(goesOn(chain, "undo", "2", "1", "0"), [true, true, false]);
    assert.deepEqual(goesOn(chain, "redo", "1", "2", "3"), [true, true, false]);
    assert.deepEqual(goesOn(chain, "undo", "1", "0", "older"), [true, false, false]);
    assert.deepEqual(goesOn(chain, "redo", "0", "2", "3"), [false, true, false]);
});

test("a rewrite of one edit has nothing between", () => {
    assert.deepEqual(goesOn(chained("0", "1"), "undo", "0", "older"), [false, false]);
});

test("a text of the rewrite that others have made does not go on, nor what comes before it is undone", () => {
    const chain = chained("0", "1", "2", "3");
    chain.changed("a"); // to "2", by Revert This Hunk
    chain.changed("a"); // to "2x"
    assert.deepEqual(goesOn(chain, "undo", "2", "3", "2", "0"), [false, false, true, false]);
    assert.deepEqual(goesOn(chain, "redo", "2", "3", "2", "2x"), [true, false, false, false]);
});

test("what was typed after a rewrite is undone first; then one undo takes all of the rewrite", () => {
    const chain = chained("0", "1", "2");
    chain.changed("a");
    assert.deepEqual(goesOn(chain, "undo", "2", "1", "0"), [false, true, false]);
});

test("a text from before the rewrite that looks like one of it does not go on", () => {
    const chain = chained("0", "1", "2", "3");
    assert.deepEqual(goesOn(chain, "undo", "0", "2", "1"), [false, false, false]);
});

test("after an undo, what others change takes the way on away", () => {
    const chain = chained("0", "1", "2", "3");
    assert.deepEqual(goesOn(chain, "undo", "0"), [false]);
    chain.changed("a");
    assert.deepEqual(goesOn(chain, "undo", "2", "1"), [false, false]);
});

test("a rewrite begins a chain of its own; documents do not mix, and a closed one has none", () => {
    const chain = chained("0", "1", "2");
    assert.equal(chain.moved("b", "undo", "1"), false);
    chain.begin("a", "2 and typed", "4");
    assert.deepEqual(goesOn(chain, "undo", "2 and typed", "2", "1"), [false, false, false]);
    chain.forget("a");
    chain.add("a", "5");
    assert.deepEqual(goesOn(chain, "undo", "4", "5"), [false, false]);
});
