// The settings, read and checked. A wrong value is named to the user and its default stands in. No VS Code here.

export type Review = "apply" | "hunks";

export interface Settings {
    path: string;
    args: string[];
    model: string;
    warm: boolean;
    /** Seconds that the language server may take to start. */
    startTimeout: number;
    /** Name to instruction; empty: the daemon's own. */
    presets: Record<string, string>;
    review: Review;
    marks: boolean;
    historySize: number;
    /** Seconds that the editor may take to answer an edit. */
    applyTimeout: number;
}

export const DEFAULTS: Settings = {
    path: "specd",
    args: ["lsp"],
    model: "",
    warm: true,
    startTimeout: 20,
    presets: {},
    review: "apply",
    marks: true,
    historySize: 20,
    applyTimeout: 3,
};

const TRACES = ["off", "messages", "verbose"];

type Check = [what: string, holds: (value: unknown) => boolean];

const CHECKS: { [key in keyof Settings]: Check } = {
    path: ["the name or the path of the specd command", (value) => typeof value === "string" && value.trim() !== ""],
    args: ["a list of words", (value) => Array.isArray(value) && value.every((word) => typeof word === "string")],
    model: ["a folder or a name", (value) => typeof value === "string"],
    warm: ["true or false", (value) => typeof value === "boolean"],
    startTimeout: ["a number of seconds from 1 to 600", (value) => within(value, 1, 600)],
    presets: ["an object of names and instructions", isPresets],
    review: ["apply or hunks", (value) => value === "apply" || value === "hunks"],
    marks: ["true or false", (value) => typeof value === "boolean"],
    historySize: ["a whole number from 0 to 200", (value) => Number.isInteger(value) && within(value, 0, 200)],
    applyTimeout: ["a number of seconds from 0.05 to 600", (value) => within(value, 0.05, 600)],
};

/** The settings that `get` tells, and what is wrong with them, in words for the user. */
export function readSettings(get: (key: string) => unknown): { settings: Settings; problems: string[] } {
    const settings: Record<string, unknown> = { ...DEFAULTS };
    const problems: string[] = [];
    for (const [key, [what, holds]] of Object.entries(CHECKS)) {
        const value = get(key);
        if (value === undefined || value === null) continue;
        if (holds(value)) settings[key] = value;
        else problems.push(`the setting specd.${key} must be ${what}; the default is used.`);
    }
    const trace = get("trace.server"); // the language client reads it
    if (trace !== undefined && trace !== null && !TRACES.includes(trace as string)) {
        problems.push(`the setting specd.trace.server must be ${TRACES.join(", ")}; it is taken as off.`);
    }
    return { settings: settings as unknown as Settings, problems };
}

/** What the server is told at `initialize` (editors/PROTOCOL.md, "Options"). */
export function serverOptions(settings: Settings): Record<string, unknown> {
    const options: Record<string, unknown> = { warm: settings.warm, applyTimeout: settings.applyTimeout };
    if (settings.model) options["model"] = settings.model;
    if (Object.keys(settings.presets).length) options["presets"] = settings.presets;
    if (settings.review !== "apply") options["review"] = settings.review;
    return options;
}

/** Whether the server has to start anew for these. */
export function needsRestart(before: Settings, after: Settings): boolean {
    const told = ({ path, args, ...rest }: Settings): string => JSON.stringify([path, args, serverOptions(rest as Settings)]);
    return told(before) !== told(after);
}

function isPresets(value: unknown): boolean {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    return Object.values(value).every((text) => typeof text === "string" && text.trim() !== "");
}

function within(value: unknown, least: number, most: number): boolean {
    return typeof value === "number" && value >= least && value <= most;
}
