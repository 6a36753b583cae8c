// The instructions used before, latest first. Values only; where they are kept is the caller's concern.

/** `instruction` first, once, and `size` at most. */
export function remember(history: readonly string[], instruction: string, size: number): string[] {
    const text = instruction.trim();
    if (!text) return history.slice(0, size);
    return [text, ...history.filter((other) => other !== text)].slice(0, size);
}

/** What was kept, whatever a former version or a hand has made of it. */
export function readHistory(kept: unknown, size: number): string[] {
    if (!Array.isArray(kept)) return [];
    const texts = kept.filter((text): text is string => typeof text === "string" && text.trim() !== "");
    return [...new Set(texts)].slice(0, size);
}

/** An instruction as one line of a list. */
export function oneLine(instruction: string): string {
    return instruction.trim().replace(/\s*\n\s*/g, " ⏎ ");
}
