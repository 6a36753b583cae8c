// The language server as a process: started, and looked at when it has ended. No VS Code here.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";

const KEPT = 2000; // characters of what it says on standard error
const SHOWN = 300; // characters of that for the user
const GRACE_MS = 2000; // that it has to end by itself once its input is closed

export class ServerProcess {
    private words = "";
    private end: string | undefined;

    private constructor(readonly child: ChildProcessWithoutNullStreams) {
        child.stderr.on("data", (chunk: Buffer) => (this.words = (this.words + chunk.toString()).slice(-KEPT)));
        child.on("exit", (code, signal) => (this.end = signal === null ? `with exit code ${code}` : `by ${signal}`));
        child.stdin.on("error", () => undefined); // it has gone; its end is noticed by its output
    }

    /** Rejects where the file cannot be run at all. */
    static async start(command: string, args: readonly string[], cwd: string | undefined): Promise<ServerProcess> {
        const child = spawn(command, args, { cwd, windowsHide: true });
        const process = new ServerProcess(child);
        await once(child, "spawn");
        child.on("error", () => undefined); // a signal that could not be sent
        return process;
    }

    /** How it ended, for the user: `with exit code 1: the last line that it wrote`; undefined if it still runs. */
    async ended(patienceMs = 0): Promise<string | undefined> {
        if (this.end === undefined && patienceMs) await Promise.race([once(this.child, "close"), later(patienceMs)]);
        if (this.end === undefined) return undefined;
        const last = this.words.trim().split("\n").pop()?.trim();
        return last ? `${this.end}: ${last.slice(0, SHOWN)}` : this.end;
    }

    /** It is to end: by itself, or it is killed. */
    stop(): void {
        this.child.stdin.end();
        if (this.end === undefined) setTimeout(() => this.child.kill("SIGKILL"), GRACE_MS);
    }
}

function later(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
}
