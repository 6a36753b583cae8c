// A user's home for the tests: settings, a workspace, a daemon of its own that says what a replay tells it to.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PATIENCE } from "./patience";

export const GRID = `class Grid:
    def __init__(self, width, height):
        self.width = width
        self.height = height
        self.cells = [[0] * width for _ in range(height)]

    def get(self, x, y):
        return self.cells[y][x]


def make_grid(n):
    grid = Grid(n, n)
    return grid


def trace(grid: Grid) -> int:
    return sum(grid.get(i, i) for i in range(grid.width))


def corner(grid: Grid) -> int:
    return grid.get(0, 0)
`;
export const MESH = GRID.replaceAll("Grid", "Mesh");

const SWAP = [["Grid", "Mesh"]];
const ANSWERS = {
    answers: [
        { when: "everywhere", swap: SWAP, step_ms: 120, characters: 40 },
        { when: "carefully", swap: SWAP, step_ms: 350, characters: 30 },
        { when: "break", swap: [["def get(self, x, y):", "def get(self, x, y:"]] },
        { when: "forever", swap: SWAP, step_ms: 20, characters: 40, end: "hang" },
        { when: "last line", swap: [["\nc = 3", ""]] },
        { when: "link", text: "Do you want to [look here](command:workbench.action.toggleSidebarVisibility) first?" },
        { when: "nothing" },
        { when: "question", text: "What do you want to have?" },
        { swap: SWAP },
    ],
};

export class Home {
    readonly folder = mkdtempSync(join(tmpdir(), "specd-vscode-"));
    readonly work = join(this.folder, "work");
    readonly env: NodeJS.ProcessEnv;

    constructor(readonly specd: string) {
        for (const name of ["run", "config/specd", "state", "cache", "work", "data/User", "data/Machine", "extensions"]) {
            mkdirSync(join(this.folder, name), { recursive: true, mode: 0o700 });
        }
        this.env = {
            ...process.env,
            OMP_NUM_THREADS: "1",
            XDG_RUNTIME_DIR: join(this.folder, "run"),
            XDG_CONFIG_HOME: join(this.folder, "config"),
            XDG_STATE_HOME: join(this.folder, "state"),
            XDG_CACHE_HOME: join(this.folder, "cache"),
            XDG_DATA_HOME: join(this.folder, "data"),
        };
        writeFileSync(join(this.folder, "replay.json"), JSON.stringify(ANSWERS));
        this.replay();
        this.userSettings();
        this.machineSettings();
    }

    /** The daemon says what ANSWERS tells. */
    replay(): void {
        this.daemonSettings(`model = ${JSON.stringify(join(this.folder, "replay.json"))}\nwatch = false\n`);
    }

    /** The daemon has the bundled model. */
    bundled(): void {
        this.daemonSettings("watch = false\n");
    }

    /** VS Code's settings of the user, read when its window opens. */
    userSettings(more: Record<string, unknown> = {}): void {
        const settings = {
            "security.workspace.trust.enabled": false,
            "workbench.startupEditor": "none",
            "workbench.colorTheme": "Default Light Modern",
            "editor.minimap.enabled": false,
            "editor.stickyScroll.enabled": false,
            "files.autoSave": "off",
            "telemetry.telemetryLevel": "off",
            "chat.disableAIFeatures": true,
            "workbench.secondarySideBar.defaultVisibility": "hidden",
            "editor.lightbulb.enabled": "on",
            "update.mode": "none",
            "extensions.autoCheckUpdates": false,
            ...more,
        };
        writeFileSync(join(this.folder, "data/User/settings.json"), JSON.stringify(settings));
    }

    /** VS Code's settings of the machine where the files are; a change is seen at once. */
    machineSettings(more: Record<string, unknown> = {}): void {
        const settings = { "specd.path": this.specd, ...more };
        writeFileSync(join(this.folder, "data/Machine/settings.json"), JSON.stringify(settings));
    }

    write(name: string, text: string, mode = 0o644): void {
        const file = join(this.work, name);
        writeFileSync(file, text);
        chmodSync(file, mode);
    }

    read(name: string): string {
        return readFileSync(join(this.work, name), "utf8");
    }

    /** Wait until a file holds `text`. */
    async waitFor(name: string, text: string, seconds = 10): Promise<void> {
        const end = Date.now() + seconds * 1000 * PATIENCE;
        while (this.read(name) !== text && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
        assert.equal(this.read(name), text);
    }

    /** The processes of language servers that run in this home, the eldest first. */
    languageServers(): number[] {
        return this.processes("lsp");
    }

    /** The processes that run VS Code's extensions. */
    extensionHosts(): number[] {
        return this.processes("--type=extensionHost");
    }

    /** `work` is done while these processes do not answer, as over a slow connection. */
    async whileWaiting(pids: number[], work: () => Promise<void>): Promise<void> {
        assert.notEqual(pids.length, 0, "the processes were not found");
        for (const pid of pids) process.kill(pid, "SIGSTOP");
        try {
            await work();
        } finally {
            for (const pid of pids) process.kill(pid, "SIGCONT");
        }
    }

    /** Those of this home that have `word` in their command line, the eldest first. */
    private processes(word: string): number[] {
        const isOurs = (pid: string): boolean => {
            try {
                const [words, variables] = ["cmdline", "environ"].map((name) => readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0"));
                return !!words?.includes(word) && !!variables?.includes(`XDG_RUNTIME_DIR=${this.env["XDG_RUNTIME_DIR"]}`);
            } catch {
                return false; // it has gone
            }
        };
        return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter(isOurs).map(Number);
    }

    close(): void {
        this.run("stop");
        if (!process.env["KEEP_HOME"]) rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    }

    private daemonSettings(text: string): void {
        this.run("stop");
        writeFileSync(join(this.folder, "config/specd/config.toml"), text);
    }

    private run(...args: string[]): void {
        try {
            execFileSync(this.specd, args, { env: this.env, stdio: "ignore", timeout: 60_000 });
        } catch {
            // no daemon ran
        }
    }
}
