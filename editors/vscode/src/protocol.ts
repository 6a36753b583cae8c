// What specd's language server speaks beyond LSP, typed: editors/PROTOCOL.md has the words. No VS Code here.

import type { Range } from "vscode-languageclient/node";

export interface RewriteParams {
    uri: string;
    instruction: string;
    /** Absent: the whole document. Empty: the smallest definition around it. */
    range?: Range;
    /** Of the document that `range` counts in. */
    version: number;
    /** The line of a comment that asked for this; it goes with the edit. */
    comment?: number;
}

export type OutcomeName =
    | "done"
    | "conflict"
    | "no_change"
    | "declined"
    | "truncated"
    | "cancelled"
    | "refused"
    | "error";

export type Severity = "info" | "warning" | "error";

export interface RewriteResult {
    job: string;
    outcome: OutcomeName;
    /** How grave it is for the user. */
    severity: Severity;
    message: string;
    hunks: number;
    conflicts: string[];
}

export interface RevertResult {
    reverted: number;
    refused: string[];
    message: string;
}

export interface StatusResult {
    daemon: DaemonStatus | null;
    /** Why there is no word of the daemon; an older server does not tell. */
    problem?: string;
    jobs: { job: string; uri: string; running: boolean }[];
}

export interface DaemonStatus {
    version?: string;
    state?: string;
    memory_bytes?: number;
    problem?: string;
    log?: string;
    models?: { path: string; state: string; message?: string; device?: string }[];
}

/** A job's region, in lines of the buffer as it was when the job began; `endLine` is behind the last. */
export interface RegionParams {
    job: string;
    uri: string;
    version: number;
    startLine: number;
    endLine: number;
    label: string;
}

/** A hunk is in the buffer, at lines [startLine, endLine) of `version`; or, removed, it is out of it again. */
export interface HunkParams {
    job: string;
    uri: string;
    version: number;
    number: number;
    startLine: number;
    endLine: number;
    oldText: string;
    removed: boolean;
}

/** The argument of the command that the server's code actions carry. */
export interface ActionArgument {
    uri: string;
    range: Range;
    instruction: string;
    comment?: number;
    /** Of the text that it was offered for; codeActions.ts adds it. */
    version?: number;
}

export const METHODS = {
    prepare: "specd/prepare",
    rewrite: "specd/rewrite",
    revert: "specd/revert",
    status: "specd/status",
    region: "specd/region",
    hunk: "specd/hunk",
} as const;

/** LSP's error code of a request that was cancelled. */
export const REQUEST_CANCELLED = -32800;

export function isActionArgument(value: unknown): value is ActionArgument {
    const given = value as Partial<ActionArgument> | null;
    return typeof given === "object" && given !== null && typeof given.uri === "string" && typeof given.instruction === "string";
}
