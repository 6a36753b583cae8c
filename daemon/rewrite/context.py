"""The lines around a region that a prompt has room for."""

from collections.abc import Sequence

from specd.daemon.rewrite.lines import is_blank, leading


def surroundings(lines: Sequence[str], start: int, end: int, room: int) -> tuple[int, int]:
    """Lines [first, last) around the region [start, end) whose text outside the region has at most `room` characters.

    Two thirds of the room are for what precedes, unless one side needs less than its share. Both ends are cut where a
    top-level piece of text begins or ends (a line without indentation beside a blank one), else at a blank line; a side
    with neither is cut where the room ends.
    """
    before = sum(map(len, lines[:start]))
    after = sum(map(len, lines[end:]))
    room_after = min(after, max(room // 3, room - before))
    first = start
    left = room - room_after
    while first > 0 and len(lines[first - 1]) <= left:
        first -= 1
        left -= len(lines[first])
    last = end
    left = room_after
    while last < len(lines) and len(lines[last]) <= left:
        left -= len(lines[last])
        last += 1
    return _cut_first(lines, first, start), _cut_last(lines, end, last)


def _cut_first(lines: Sequence[str], first: int, start: int) -> int:
    if first == 0:
        return 0
    begins = [at for at in range(first, start) if not is_blank(lines[at]) and is_blank(lines[at - 1])]
    return next((at for at in begins if not leading(lines[at])), begins[0] if begins else first)


def _cut_last(lines: Sequence[str], end: int, last: int) -> int:
    if last == len(lines):
        return last
    ends = [at for at in range(last, end, -1) if is_blank(lines[at]) and not is_blank(lines[at - 1])]
    return next((at for at in ends if not leading(lines[at - 1])), ends[0] if ends else last)
