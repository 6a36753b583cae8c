"""Neovim's screen as it draws it (`:help ui-linegrid`), and as an SVG picture."""

from html import escape
from typing import Any

Style = tuple[str, str, bool, bool]  # foreground, background, bold, italic

_CELL_WIDTH, _CELL_HEIGHT, _FONT = 8.4, 18, 14


class Screen:
    """A grid of cells, kept up to date by `redraw` notifications. cells: rows of [character, highlight id]."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.cells: list[list[tuple[str, int]]] = [[(" ", 0)] * columns for _ in range(lines)]
        self.highlights: dict[int, dict[str, Any]] = {0: {}}
        self.foreground, self.background = "#000000", "#ffffff"
        self.cursor = (0, 0)

    def redraw(self, batch: list[Any]) -> None:
        """One notification: [name, arguments, arguments, ...] each."""
        for name, *calls in batch:
            handle = getattr(self, f"_{name}", None)
            for arguments in calls:
                if handle is not None:
                    handle(*arguments)

    def text(self) -> str:
        """What can be read on it."""
        return "\n".join("".join(char for char, _ in row).rstrip() for row in self.cells)

    def _grid_line(self, grid: int, row: int, column: int, cells: list[Any], *_: Any) -> None:
        highlight = 0
        for char, *rest in cells:
            highlight = rest[0] if rest else highlight
            for _repeat in range(rest[1] if len(rest) > 1 else 1):
                self.cells[row][column] = (char, highlight)
                column += 1

    def _grid_clear(self, grid: int) -> None:
        self.cells = [[(" ", 0)] * self.columns for _ in range(self.lines)]

    def _grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        moved = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in moved:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], *_: Any) -> None:
        self.highlights[number] = rgb

    def _default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.foreground, self.background = f"#{foreground:06x}", f"#{background:06x}"

    def style(self, number: int) -> Style:
        """Colours and font of a highlight."""
        found = self.highlights.get(number, {})
        front = f"#{found['foreground']:06x}" if "foreground" in found else self.foreground
        back = f"#{found['background']:06x}" if "background" in found else self.background
        if found.get("reverse"):
            front, back = back, front
        return front, back, bool(found.get("bold")), bool(found.get("italic"))

    def svg_group(self, x: float, y: float, title: str) -> str:
        """The screen as a `<g>` at a place, with a line above it that says what is seen."""
        parts = [f'<g transform="translate({x},{y})">', f'<text y="-8" class="title">{escape(title)}</text>']
        width, height = self.size()
        parts.append(f'<rect width="{width}" height="{height}" fill="{self.background}" rx="3"/>')
        for row, cells in enumerate(self.cells):
            for column, text, style in _runs([(char, self.style(number)) for char, number in cells]):
                parts += self._run(row, column, text, style)
        row, column = self.cursor
        place = f'x="{column * _CELL_WIDTH:.1f}" y="{row * _CELL_HEIGHT}"'
        parts.append(f'<rect {place} width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}" fill="#8888" />')
        return "\n".join([*parts, "</g>"])

    def _run(self, row: int, column: int, text: str, style: Style) -> list[str]:
        front, back, bold, italic = style
        x, y, width = column * _CELL_WIDTH, row * _CELL_HEIGHT, len(text) * _CELL_WIDTH
        parts = []
        if back != self.background:
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_CELL_HEIGHT}" fill="{back}"/>')
        if text.strip():
            font = ' font-weight="bold"' * bold + ' font-style="italic"' * italic
            place = f'x="{x:.1f}" y="{y + _FONT - 1}" textLength="{width:.1f}" xml:space="preserve"'
            parts.append(f'<text {place} fill="{front}"{font}>{escape(text)}</text>')
        return parts

    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        return self.columns * _CELL_WIDTH, self.lines * _CELL_HEIGHT


def svg(groups: list[str], width: float, height: float) -> str:
    """A whole picture."""
    style = f"text {{ font: {_FONT}px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }}"
    title = ".title { font: 13px system-ui, sans-serif; fill: #777 }"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">'
    return "\n".join([head, f"<style>{style} {title}</style>", *groups, "</svg>", ""])


def _runs(cells: list[tuple[str, Style]]) -> list[tuple[int, str, Style]]:
    """Neighbours of one style together: (column, text, style)."""
    runs: list[tuple[int, str, Style]] = []
    for column, (char, style) in enumerate(cells):
        if runs and runs[-1][2] == style:
            start, text, _ = runs[-1]
            runs[-1] = (start, text + (char or ""), style)
        else:
            runs.append((column, char, style))
    return runs
