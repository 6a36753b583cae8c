// Where the hunks of a rewrite are, while the text goes on changing. A mark moves with the text above it, and is gone as
// soon as somebody edits its lines. Values only.

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

const REMEMBERED = 200; // versions whose changes are kept, for hunks that are told late

export class Marks {
    private marks: Mark[] = [];
    private readonly recent: { version: number; changes: readonly Change[] }[] = [];

    get all(): readonly Mark[] {
        return this.marks;
    }

    /** The document has come to `version` by these changes, the last in the text first. */
    change(version: number, changes: readonly Change[]): void {
        this.recent.push({ version, changes });
        if (this.recent.length > REMEMBERED) this.recent.shift();
        for (const change of changes) this.marks = moved(this.marks, change);
    }

    /** A hunk stands where `mark` says in the text of `version`; the text may have changed since. */
    add(mark: Mark, version: number): void {
        this.remove(mark.job, mark.number);
        let found = [mark];
        for (const later of this.recent.filter((one) => one.version > version)) {
            for (const change of later.changes) found = moved(found, change);
        }
        this.marks = [...this.marks, ...found].sort((one, other) => one.start - other.start || one.end - other.end);
    }

    remove(job: string, number: number): void {
        this.marks = this.marks.filter((mark) => mark.job !== job || mark.number !== number);
    }

    clear(): void {
        this.marks = [];
    }

    /** The mark that has `line`, or a deletion right there. */
    at(line: number): Mark | undefined {
        return this.marks.find((mark) => (mark.start <= line && line < mark.end) || isDeletionAt(mark, line));
    }

    /** The next mark after `line`, or the one before it; around the end of the document. */
    beside(line: number, direction: 1 | -1): Mark | undefined {
        const ordered = direction === 1 ? this.marks : [...this.marks].reverse();
        return ordered.find((mark) => (mark.start - line) * direction > 0) ?? ordered[0];
    }
}

function moved(marks: readonly Mark[], change: Change): Mark[] {
    const added = change.text.split("\n").length - 1;
    const shift = added - (change.end.line - change.start.line);
    const touched = linesOf(change);
    const found: Mark[] = [];
    for (const mark of marks) {
        if (touched.end <= mark.start) {
            found.push({ ...mark, start: mark.start + shift, end: mark.end + shift });
        } else if (touched.start >= mark.end) {
            found.push(mark);
        }
    }
    return found;
}

/** Lines [start, end) that a change touches; one of whole lines touches none but those that it replaces. */
function linesOf({ start, end, text }: Change): { start: number; end: number } {
    const isWholeLines = start.character === 0 && end.character === 0 && (text === "" || text.endsWith("\n"));
    return { start: start.line, end: isWholeLines ? end.line : end.line + 1 };
}

function isDeletionAt(mark: Mark, line: number): boolean {
    return mark.start === mark.end && mark.start === line;
}
