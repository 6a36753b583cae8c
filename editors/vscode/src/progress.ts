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
    isCancelled: boolean;
}

/** The jobs of this window. `onChange` is called whenever one begins, is named, or is over. */
export class Running {
    onChange: () => void = () => {};
    private readonly jobs = new Set<Job>();
    private latest = "";

    get size(): number {
        return this.jobs.size;
    }

    begin(uri: string, instruction: string): Job {
        const job: Job = { uri, instruction, name: undefined, hunks: 0, isCancelled: false };
        this.jobs.add(job);
        this.latest = "";
        this.onChange();
        return job;
    }

    end(job: Job): void {
        this.jobs.delete(job);
        this.onChange();
    }

    /** The job that the server calls `name`; it is the first unnamed one of the document if no one is called so. */
    named(name: string, uri: string): Job | undefined {
        const all = [...this.jobs];
        const known = all.find((job) => job.name === name);
        if (known !== undefined) return known;
        const job = all.find((one) => one.name === undefined && one.uri === uri);
        if (job !== undefined) job.name = name;
        return job;
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
        if (this.jobs.size > 1) return `${this.jobs.size} rewrites${this.latest && ` · ${this.latest}`}`;
        return this.latest || "rewriting";
    }
}
