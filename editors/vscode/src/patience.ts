// How long something is waited for, and how often a program that dies is started again. No VS Code here.

/** What `work` comes to; rejects with `late` if that takes longer than `seconds`. */
export async function within<T>(work: Promise<T>, seconds: number, late: () => Error): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const end = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(late()), seconds * 1000)));
    try {
        return await Promise.race([work, end]);
    } finally {
        clearTimeout(timer);
    }
}

const DEATHS = 3;
const MINUTES = 3;

/** When the language server has died. */
export class Deaths {
    private times: number[] = [];

    /** It has died at `now`, in ms; whether it is worth starting again. */
    isWorthAStart(now: number): boolean {
        this.times = [...this.times.filter((time) => now - time < MINUTES * 60_000), now];
        return this.times.length < DEATHS;
    }

    get words(): string {
        return `it has ended ${DEATHS} times within ${MINUTES} minutes`;
    }

    forget(): void {
        this.times = [];
    }
}
