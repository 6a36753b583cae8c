// Work that is asked for often and done now and then. No VS Code here.

/** Calls `work` `ms` after the first `call` since it was last done: once for all calls until then. */
export class Paced {
    private timer: NodeJS.Timeout | undefined;

    constructor(
        private readonly ms: number,
        private readonly work: () => void,
    ) {}

    call(): void {
        this.timer ??= setTimeout(() => this.now(), this.ms);
    }

    /** Do it now, in place of what is still to come. */
    now(): void {
        this.drop();
        this.work();
    }

    drop(): void {
        clearTimeout(this.timer);
        this.timer = undefined;
    }
}
