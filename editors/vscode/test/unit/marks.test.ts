import assert from "node:assert/strict";
import { test } from "node:test";
import { type Change, type Mark, Marks } from "../../src/marks";

const mark = (number: number, start: number, end: number): Mark => ({ job: "j", number, start, end, oldText: "old\n" });
const change = (start: [number, number], end: [number, number], text: string): Change => ({
    start: { line: start[0], character: start[1] },
    end: { line: end[0], character: end[1] },
    text,
});
const places = (marks: Marks): [number, number][] => marks.all.map(({ start, end }) => [start, end]);

function marked(...all: Mark[]): Marks {
    const marks = new Marks();
    for (const one of all) marks.add(one, 1);
    return marks;
}

test("a mark moves with lines that come and go above it", () => {
    const marks = marked(mark(0, 5, 7));
    marks.change(2, [change([1, 3], [1, 3], "\nx\n")]);
    assert.deepEqual(places(marks), [[7, 9]]);
    marks.change(3, [change([0, 0], [2, 0], "")]);
    assert.deepEqual(places(marks), [[5, 7]]);
});

test("an edit below leaves a mark where it is", () => {
    const marks = marked(mark(0, 5, 7));
    marks.change(2, [change([7, 0], [9, 0], "")]);
    assert.deepEqual(places(marks), [[5, 7]]);
});

test("an edit of its lines ends a mark, and no other", () => {
    const marks = marked(mark(0, 5, 7), mark(1, 9, 10));
    marks.change(2, [change([6, 2], [6, 2], "typed")]);
    assert.deepEqual(places(marks), [[9, 10]]);
});

test("a hunk right above, told as whole lines, does not end a mark", () => {
    const marks = marked(mark(0, 5, 7));
    marks.change(2, [change([3, 0], [5, 0], "a\nb\nc\n")]);
    assert.deepEqual(places(marks), [[6, 8]]);
});

test("a hunk right below does not end a mark", () => {
    const marks = marked(mark(0, 5, 7));
    marks.change(2, [change([7, 0], [8, 0], "a\n")]);
    assert.deepEqual(places(marks), [[5, 7]]);
});

test("a hunk that is told late is moved by what came since", () => {
    const marks = new Marks();
    marks.change(5, [change([0, 0], [0, 0], "a\nb\n")]);
    marks.add(mark(0, 5, 7), 4);
    marks.add(mark(1, 9, 10), 5);
    assert.deepEqual(places(marks), [[7, 9], [9, 10]]);
});

test("a mark of a deletion moves with its line and is gone when the lines around it are", () => {
    const marks = marked(mark(0, 5, 5));
    marks.change(2, [change([0, 0], [0, 0], "a\n")]);
    assert.deepEqual(places(marks), [[6, 6]]);
    marks.change(3, [change([5, 0], [8, 0], "")]);
    assert.deepEqual(places(marks), []);
});

test("several changes of one event count one after the other, the last in the text first", () => {
    const marks = marked(mark(0, 5, 6), mark(1, 8, 9));
    marks.change(2, [change([7, 0], [7, 0], "a\n"), change([1, 0], [1, 0], "b\n")]);
    assert.deepEqual(places(marks), [[6, 7], [10, 11]]);
});

test("a hunk that is out again has no mark", () => {
    const marks = marked(mark(0, 5, 6), mark(1, 8, 9));
    marks.remove("j", 0);
    assert.deepEqual(places(marks), [[8, 9]]);
});

const LAST = 20; // line of a document

test("next and previous go around", () => {
    const marks = marked(mark(0, 2, 3), mark(1, 8, 9));
    assert.equal(marks.beside(2, 1, LAST)?.start, 8);
    assert.equal(marks.beside(8, 1, LAST)?.start, 2);
    assert.equal(marks.beside(2, -1, LAST)?.start, 8);
    assert.equal(marks.beside(5, -1, LAST)?.start, 2);
    assert.equal(new Marks().beside(0, 1, LAST), undefined);
});

test("the mark at a line is the one that has it", () => {
    const marks = marked(mark(0, 2, 4), mark(1, 8, 8));
    assert.deepEqual([1, 2, 3, 4, 8].map((line) => marks.at(line, LAST)?.number), [undefined, 0, 0, undefined, 1]);
});

test("lines that were deleted behind the last one are reached on it, and left from there", () => {
    const marks = marked(mark(0, 2, 3), mark(1, 8, 8));
    assert.deepEqual([6, 7].map((line) => marks.at(line, 7)?.number), [undefined, 1]);
    assert.equal(marks.beside(7, 1, 7)?.number, 0);
    assert.equal(marks.beside(7, -1, 7)?.number, 0);
    assert.equal(marks.beside(2, 1, 7)?.number, 1);
});

const regionsOf = (...changes: Change[]): [number, number][] => {
    const marks = new Marks();
    marks.begin("j", { start: 5, end: 8 }, 1);
    changes.forEach((one, index) => marks.change(2 + index, [one]));
    return marks.regions.map(({ start, end }) => [start, end]);
};

test("a region moves with the text above it, and grows and shrinks with its own", () => {
    assert.deepEqual(regionsOf(change([1, 3], [1, 3], "\nx\n")), [[7, 10]]);
    assert.deepEqual(regionsOf(change([6, 0], [7, 0], "")), [[5, 7]]);
    assert.deepEqual(regionsOf(change([7, 4], [7, 4], "\n\n")), [[5, 10]]);
    assert.deepEqual(regionsOf(change([8, 0], [9, 0], "")), [[5, 8]]);
});

test("lines that come in at a region's ends are of it; a new line above it is not", () => {
    assert.deepEqual(regionsOf(change([5, 0], [5, 0], "a\n")), [[5, 9]]);
    assert.deepEqual(regionsOf(change([8, 0], [8, 0], "a\n")), [[5, 9]]);
    assert.deepEqual(regionsOf(change([4, 9], [4, 9], "\n")), [[6, 9]]);
});

test("a region whose lines are all gone has none, and moves on", () => {
    const gone = change([4, 0], [9, 0], "");
    assert.deepEqual(regionsOf(gone), [[4, 4]]);
    assert.deepEqual(regionsOf(gone, change([1, 0], [1, 0], "a\n")), [[5, 5]]);
});

test("a region that is told late is moved by what came since; others stay when one is over", () => {
    const marks = new Marks();
    marks.change(5, [change([0, 0], [0, 0], "a\nb\n")]);
    marks.begin("old", { start: 5, end: 7 }, 4);
    marks.begin("new", { start: 9, end: 10 }, 5);
    assert.deepEqual(marks.regions, [{ start: 7, end: 9 }, { start: 9, end: 10 }]);
    marks.end("old");
    marks.clear();
    assert.deepEqual(marks.regions, [{ start: 9, end: 10 }]);
});

test("the changes of one event come to the same at once and one after the other", () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 300; round++) {
        const changes: Change[] = [];
        for (let line = random(3); line < 30; line += 1 + random(4)) {
            const [rows, column] = [random(3), random(2) * 4];
            changes.unshift(change([line, column], [line + rows, random(2) ? column : 0], ["", "x", "a\n", "a\nb\n", "a\nb"][random(5)] ?? ""));
            if (!rows) changes[0] = change([line, column], [line, column + random(3)], "z\n".repeat(random(3)));
            line += rows;
        }
        const marks = Array.from({ length: 10 }, (_, at) => mark(at, at * 3, at * 3 + random(3)));
        const [atOnce, oneByOne] = [marked(...marks), marked(...marks)];
        atOnce.change(2, changes);
        changes.forEach((one, at) => oneByOne.change(2 + at, [one]));
        assert.deepEqual(atOnce.all, oneByOne.all, JSON.stringify(changes));
    }
});

test("marks are in the order of the text, whatever order they are told in", () => {
    const marks = marked(mark(3, 9, 10), mark(0, 2, 4), mark(2, 8, 9), mark(1, 8, 8), mark(4, 1, 2));
    assert.deepEqual(places(marks), [[1, 2], [2, 4], [8, 8], [8, 9], [9, 10]]);
});
