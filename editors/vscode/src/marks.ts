// Where the hunks of rewrites are, and what is being rewritten, while the text goes on changing. A mark moves with the text
// above it, and is gone as soon as somebody edits its lines; a region grows and shrinks with its text. Values only.

export interface Mark {
    job: string;
    number: number;
    /** Lines [start, end); a deletion has none and stands before line `start`. */
    start: number;
    end: number;
    oldText: string;
}

/** One change as VS Code tells it: the range in the text before it, and what stands there now. */
export interface Change {
    start: { line: number; character: number };
    end: { line: number; character: number };
    text: string;
}

/** Lines [start, end). */
export interface Lines {
    start: number;
    end: number;
}

const REMEMBERED = 200; // versions whose changes are kept, for hunks that are told late

export class Marks {
    private marks: Mark[] = [];
    private readonly regionOf = new Map<string, Lines>(); // job to what it rewrites
    private readonly recent: { version: number; changes: readonly Change[] }[] = [];

    get all(): readonly Mark[] {
        return this.marks;
    }

    get regions(): readonly Lines[] {
        return [...this.regionOf.values()];
    }

    /** The document has come to `version` by these changes, the last in the text first. */
    change(version: number, changes: readonly Change[]): void {
        this.recent.push({ version, changes });
        if (this.recent.length > REMEMBERED) this.recent.shift();
        this.marks = moved(this.marks, changes);
        for (const [job, region] of this.regionOf) this.regionOf.set(job, changes.reduce(movedRegion, region));
    }

    /** A job begins to rewrite these lines of `version`. */
    begin(job: string, region: Lines, version: number): void {
        this.regionOf.set(job, this.since(version).reduce(movedRegion, region));
    }

    end(job: string): void {
        this.regionOf.delete(job);
    }

    /** A hunk stands where `mark` says in the text of `version`; the text may have changed since. */
    add(mark: Mark, version: number): void {
        this.remove(mark.job, mark.number);
        const [found] = this.since(version).reduce<Mark[]>(movedBy, [mark]);
        if (found !== undefined) this.marks.splice(this.placeFor(found), 0, found);
    }

    remove(job: string, number: number): void {
        const at = this.marks.findIndex((mark) => mark.number === number && mark.job === job);
        if (at >= 0) this.marks.splice(at, 1);
    }

    clear(): void {
        this.marks = [];
    }

    /** The mark that has `line`, or a deletion right there; `last` is the document's last line. */
    at(line: number, last: number): Mark | undefined {
        return this.marks.find((mark) => (mark.start <= line && line < mark.end) || (isDeletion(mark) && placeOf(mark, last) === line));
    }

    /** The next mark after `line`, or the one before it; around the end of the document, whose last line is `last`. */
    beside(line: number, direction: 1 | -1, last: number): Mark | undefined {
        const ordered = direction === 1 ? this.marks : [...this.marks].reverse();
        return ordered.find((mark) => (placeOf(mark, last) - line) * direction > 0) ?? ordered[0];
    }

    /** Where in `marks`, which are in the order of the text, a new one belongs. */
    private placeFor({ start, end }: Mark): number {
        let [low, high] = [0, this.marks.length];
        while (low < high) {
            const middle = (low + high) >> 1;
            const other = this.marks[middle] as Mark;
            if (other.start < start || (other.start === start && other.end <= end)) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    private since(version: number): Change[] {
        return this.recent.filter((one) => one.version > version).flatMap((one) => one.changes);
    }
}

/** Marks in the order of the text after the changes of one event; in one go over both, as an edit may have many hunks. */
function moved(marks: readonly Mark[], changes: readonly Change[]): Mark[] {
    const isUpwards = changes.every((change, at) => at === 0 || !isBefore((changes[at - 1] as Change).start, change.end));
    if (!isUpwards) return changes.reduce<Mark[]>(movedBy, [...marks]);
    const touched = changes.map((change) => ({ ...linesOf(change), shift: shiftOf(change) })).reverse();
    const found: Mark[] = [];
    let [at, shift] = [0, 0];
    for (const mark of marks) {
        for (let above = touched[at]; above !== undefined && above.end <= mark.start; above = touched[++at]) shift += above.shift;
        const next = touched[at];
        if (next === undefined || next.start >= mark.end) found.push(shifted(mark, shift));
    }
    return found;
}

function movedBy(marks: readonly Mark[], change: Change): Mark[] {
    const shift = shiftOf(change);
    const touched = linesOf(change);
    const found: Mark[] = [];
    for (const mark of marks) {
        if (touched.end <= mark.start) found.push(shifted(mark, shift));
        else if (touched.start >= mark.end) found.push(mark);
    }
    return found;
}

function shifted(mark: Mark, shift: number): Mark {
    return shift ? { ...mark, start: mark.start + shift, end: mark.end + shift } : mark;
}

function isBefore(one: Change["start"], other: Change["start"]): boolean {
    return one.line < other.line || (one.line === other.line && one.character < other.character);
}

/** What comes in right before a region's first line is of the region, as a hunk there is. */
export function movedRegion({ start, end }: Lines, change: Change): Lines {
    const touched = linesOf(change);
    const isInsertionAt = touched.start === touched.end && touched.start === start;
    return { start: isInsertionAt ? start : movedLine(start, touched, change), end: movedLine(end, touched, change) };
}

/** Where the beginning of a line is after a change; inside of what is replaced it is held within what comes for it. */
function movedLine(line: number, touched: Lines, change: Change): number {
    if (line >= touched.end) return line + shiftOf(change);
    return line > touched.start ? Math.min(line, touched.end + shiftOf(change)) : line;
}

/** By how many lines the text below a change moves. */
function shiftOf({ start, end, text }: Change): number {
    return text.split("\n").length - 1 - (end.line - start.line);
}

/** Lines that a change touches; one of whole lines touches none but those that it replaces. */
function linesOf({ start, end, text }: Change): Lines {
    const isWholeLines = start.character === 0 && end.character === 0 && (text === "" || text.endsWith("\n"));
    return { start: start.line, end: isWholeLines ? end.line : end.line + 1 };
}

export function isDeletion(mark: Mark): boolean {
    return mark.start === mark.end;
}

/** The line of a mark that a cursor can be in: what was deleted at the end of a text is behind its last line. */
function placeOf(mark: Mark, last: number): number {
    return Math.min(mark.start, last);
}
