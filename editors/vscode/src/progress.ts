// What is being rewritten now, for the status item, the Escape key and cancel. No VS Code here.

export type ProgressValue =
    | { kind: "begin"; title: string; message?: string; percentage?: number }
    | { kind: "report"; message?: string; percentage?: number }
    | { kind: "end"; message?: string };

export interface Job {
    readonly uri: string;
    readonly instruction: string;
    /** The server's name of it, once it has told one. */
    name: string | undefined;
    hunks: number;
    /** Whether the server was asked; before, it may have to be started. */
    isSent: boolean;
    /** Whether what is selected in its text is still what was when it was asked for. */
    isSelectionAsked: boolean;
    /** Whether it waits for the user to take or leave its hunks. */
    isReviewed: boolean;
}

/** The jobs of this window. `onChange` is called whenever one begins, is named, or is over. */
export class Running {
    onChange: () => void = () => {};
    private readonly jobs = new Set<Job>();
    private latest = "rewriting";

    get size(): number {
        return this.jobs.size;
    }

    /** `stage`: what is told of it until there is progress. */
    begin(uri: string, instruction: string, stage = "rewriting"): Job {
        const flags = { isSent: false, isSelectionAsked: true, isReviewed: false };
        const job: Job = { uri, instruction, name: undefined, hunks: 0, ...flags };
        this.jobs.add(job);
        this.latest = stage;
        this.onChange();
        return job;
    }

    sent(job: Job): void {
        job.isSent = true;
        this.latest = "rewriting";
        this.onChange();
    }

    end(job: Job): void {
        this.jobs.delete(job);
        this.onChange();
    }

    /** The user has selected something else, or has put the cursor elsewhere. */
    selected(uri: string): void {
        const jobs = this.of(uri).filter((job) => job.isSelectionAsked);
        for (const job of jobs) job.isSelectionAsked = false;
        if (jobs.length) this.onChange();
    }

    /** A rewrite of this document waits for the user to choose among its hunks, or does so no longer. */
    reviewed(uri: string, isReviewed: boolean): void {
        for (const job of this.of(uri)) job.isReviewed = isReviewed;
        this.onChange();
    }

    /** Whether nothing goes on but that the user is waited for. */
    get isReviewed(): boolean {
        return this.jobs.size > 0 && this.of(undefined).every((job) => job.isReviewed);
    }

    /** The server has told the name of a job: it is that of the document's first job that has none. */
    name(name: string, uri: string): void {
        if (this.called(name) !== undefined) return;
        const job = this.of(uri).find((one) => one.name === undefined);
        if (job !== undefined) job.name = name;
    }

    /** The running job that the server calls `name`. */
    called(name: string): Job | undefined {
        return this.of(undefined).find((job) => job.name === name);
    }

    of(uri: string | undefined): Job[] {
        return [...this.jobs].filter((job) => uri === undefined || job.uri === uri);
    }

    report(value: ProgressValue): void {
        if (value.kind === "end" || value.message === undefined) return;
        this.latest = value.message;
        this.onChange();
    }

    /** What the status item says, e.g. `hunk 3 · 61 % · 412 tok/s`. */
    get text(): string {
        const stage = this.isReviewed ? "waiting for your choice in the Refactor Preview" : this.latest;
        return this.jobs.size > 1 ? `${this.jobs.size} rewrites · ${stage}` : stage;
    }
}
