// What the tests in a real VS Code share: one code-server, one browser, one window, and screenshots for the documents.

import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { type Browser, chromium } from "playwright-core";
import { CodeServer } from "./codeServer";
import { Home } from "./home";
import { PATIENCE } from "./patience";
import { Window } from "./window";

const CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

export interface Bench {
    home: Home;
    server: CodeServer;
    browser: Browser;
    window: Window;
}

/** The paths come from `make test-vscode`. */
function given(name: string): string {
    const value = process.env[name];
    if (!value || !existsSync(value)) throw new Error(`${name} must name something that exists: run make test-vscode`);
    return path.resolve(value);
}

/** `prepare` is called before VS Code starts. */
export async function setUp(prepare: (home: Home) => void = () => {}): Promise<Bench> {
    const home = new Home(given("SPECD"));
    prepare(home);
    const server = new CodeServer(given("CODE_SERVER"), home);
    console.log(server.install(given("VSIX")).trim().split("\n").pop());
    const address = await server.start();
    const browser = await chromium.launch({ executablePath: given("CHROMIUM"), headless: true, args: CHROMIUM_FLAGS });
    const page = await browser.newPage({ viewport: { width: 960, height: 600 } });
    page.setDefaultTimeout(30_000 * PATIENCE);
    const window = new Window(page);
    await window.open(address);
    return { home, server, browser, window };
}

/** A test's body that leaves a picture of the window where it fails. */
export function withPicture(bench: () => Bench, body: (bench: Bench) => Promise<void>): () => Promise<void> {
    return async () => {
        try {
            await body(bench());
        } catch (error) {
            await picture(bench(), `failed-${Date.now()}`).catch(() => undefined);
            throw error;
        }
    };
}

export async function tearDown(bench: Bench | undefined): Promise<void> {
    await bench?.browser.close();
    bench?.server.stop();
    bench?.home.close();
}

/** A picture for the documents, where SCREENSHOTS names a folder. */
export async function picture({ window }: Bench, name: string): Promise<void> {
    const folder = process.env["SCREENSHOTS"];
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    await window.page.mouse.move(700, 540); // no hint of what the mouse was on
    await window.page.waitForTimeout(500); // what fades in is there
    await window.page.screenshot({ path: path.join(folder, `${name}.png`) });
}
