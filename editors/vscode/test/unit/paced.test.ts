import assert from "node:assert/strict";
import { test } from "node:test";
import { Paced } from "../../src/paced";

test("many calls are one piece of work, and none of it before they are through", ({ mock }) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    let done = 0;
    const drawing = new Paced(100, () => done++);
    for (let hunk = 0; hunk < 600; hunk++) drawing.call();
    assert.equal(done, 0);
    mock.timers.tick(100);
    assert.equal(done, 1);
    mock.timers.tick(1000);
    assert.equal(done, 1);
});

test("calls that go on for long are worked off now and then", ({ mock }) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    let done = 0;
    const drawing = new Paced(100, () => done++);
    for (let ms = 0; ms < 1000; ms++) {
        drawing.call();
        mock.timers.tick(1);
    }
    assert.equal(done, 10);
});

test("what is done at once, or dropped, does not come again", ({ mock }) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    let done = 0;
    const drawing = new Paced(100, () => done++);
    drawing.call();
    drawing.now();
    drawing.call();
    drawing.drop();
    mock.timers.tick(1000);
    assert.equal(done, 1);
});
