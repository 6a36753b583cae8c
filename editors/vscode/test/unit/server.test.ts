import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Deaths, within } from "../../src/patience";
import { ServerProcess } from "../../src/serverProcess";

test("what comes in time is passed on, and so is what goes wrong in time", async () => {
    const late = (): Error => new Error("late");
    assert.equal(await within(Promise.resolve(3), 5, late), 3);
    await assert.rejects(within(Promise.reject(new Error("wrong")), 5, late), /wrong/);
});

test("what does not come is not waited for", async () => {
    await assert.rejects(within(new Promise(() => undefined), 0.02, () => new Error("late")), /late/);
});

test("a server that dies is started again, unless it dies again and again", () => {
    const deaths = new Deaths();
    assert.deepEqual([0, 1000, 2000].map((now) => deaths.isWorthAStart(now)), [true, true, false]);
    assert.equal(deaths.isWorthAStart(10 * 60_000), true);
    const rare = new Deaths();
    for (let minute = 0; minute < 20; minute += 2) assert.equal(rare.isWorthAStart(minute * 60_000), true);
});

test("a program that has ended says how, with its last line", async () => {
    const started = await ServerProcess.start("/bin/sh", ["-c", "echo first >&2; echo last words >&2; exit 3"], undefined);
    assert.equal(await started.ended(), undefined);
    assert.equal(await started.ended(10_000), "with exit code 3: last words");
    assert.equal(await started.ended(10_000), "with exit code 3: last words");
});

test("a program that cannot be run is an error", async () => {
    await assert.rejects(ServerProcess.start("/nowhere/specd", [], undefined), /ENOENT/);
});

test("a program that does not end by itself is killed", async () => {
    const started = await ServerProcess.start("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 0.1; done"], undefined);
    started.stop();
    await once(started.child, "exit");
    assert.equal(await started.ended(), "by SIGKILL");
});
