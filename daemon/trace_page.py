"""A job's timeline as a page of HTML: one file, no script, nothing that is fetched, light or dark as the reader has it.

What the page says comes from `timeline`, which reads counts and times alone, and is escaped here all the same.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from specd.daemon.timeline import Span, Step, Timeline

_TICKS: Final = 5
_COLOURS: Final = 6  # proposers that have a colour of their own

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #1d1f23; --dim: #666a73; --line: #dcdcd6; --track: #f0f0eb;
  --wait: #a9adb8; --read: #4c7fd0; --write: #2f9e6e; --edit: #c06a2b; --mark: #b3261e;
  --p0: #2f9e6e; --p1: #4c7fd0; --p2: #c06a2b; --p3: #8b5fc4; --p4: #b59b1d; --p5: #7b8290; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e6e6e1; --dim: #9a9ea8; --line: #33363d;
  --track: #1f2228; --wait: #5d626e; --read: #6f9fe8; --write: #4fc08d; --edit: #e0904f; --mark: #f2827a;
  --p0: #4fc08d; --p1: #6f9fe8; --p2: #e0904f; --p3: #b08be6; --p4: #d8c04a; --p5: #8f96a3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
article + article { margin-top: 3.5rem; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.facts, .note, caption, .axis { color: var(--dim); } .facts { margin: .2rem 0 1.2rem; }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; margin: 0; }
.figures div { display: flex; flex-direction: column-reverse; } .figures dd { margin: 0; font-size: 1.5rem; }
.figures dt { color: var(--dim); font-size: .85rem; }
.row, .axis { display: grid; grid-template-columns: 11rem 1fr 13rem; gap: 0 .8rem; align-items: center; }
.row { border-top: 1px solid var(--line); padding: .3rem 0; } .row .note { font-size: .85rem; line-height: 1.25; }
.track { position: relative; height: 1.1rem; background: var(--track); } .steps .track { height: 4rem; }
.bar { position: absolute; top: 0; bottom: 0; min-width: 2px; } .steps .bar { top: auto; min-width: 1px; }
.steps .bar { border-right: 1px solid var(--paper); }
.mark { width: 3px; margin-left: -1px; } .before { color: var(--dim); font-size: .8rem; padding-left: .4rem; }
.axis .scale { position: relative; height: 1.3rem; font-size: .8rem; }
.axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.axis span:first-child { transform: none; } .axis span:last-child { transform: translateX(-100%); }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; }
td, th { text-align: right; padding: .15rem .6rem; border-top: 1px solid var(--line); font-weight: normal; }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--dim); border: 0; }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .5rem; vertical-align: -1px; }
@media (max-width: 45rem) { .row, .axis { grid-template-columns: 1fr; } .row { gap: .1rem; }
  .scroll { overflow-x: auto; } }
"""
_COLOUR_RULES: Final = "\n".join(
    [f".{kind} {{ background: var(--{kind}); }}" for kind in ("wait", "read", "write", "edit", "mark")]
    + [f".p{number} {{ background: var(--p{number}); }}" for number in range(_COLOURS)]
)
_HEAD: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""


def page_of(timelines: Sequence[Timeline]) -> str:
    """The page of one job, or of several, one below the other."""
    title = f"specd trace {timelines[0].job}" if len(timelines) == 1 else f"specd trace, {len(timelines)} jobs"
    parts = [
        _HEAD,
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{_COLOUR_RULES}\n</style>\n</head>\n<body>\n<main>\n",
    ]
    for timeline in timelines:
        parts += [f"<article>\n{_article(timeline)}\n</article>\n"]
    return "".join([*parts, "</main>\n</body>\n</html>\n"])


def _article(timeline: Timeline) -> str:
    facts = " · ".join(f"{escape(name)} {escape(value)}" for name, value in timeline.facts)
    figures = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for value, name in timeline.figures)
    places = {one.name: number % _COLOURS for number, one in enumerate(timeline.proposers)}
    rows = [_row(span, timeline) for span in timeline.spans]
    if timeline.steps:
        after = max((at for at, span in enumerate(timeline.spans) if span.name == "decode"), default=len(rows) - 1)
        rows.insert(after + 1, _steps_row(timeline, places))
    parts = [
        f"<h1>Job {escape(timeline.job)}</h1>",
        f'<p class="facts">{facts}</p>',
        f'<dl class="figures">{figures}</dl>',
        "<h2>Timeline</h2>",
        _axis(timeline),
        *rows,
    ]
    if timeline.proposers:
        parts += ["<h2>Tokens a step, by who drafted them</h2>", _proposers_table(timeline, places)]
    if timeline.steps:
        parts += [_steps_table(timeline)]
    return "\n".join(parts)


def _axis(timeline: Timeline) -> str:
    width = timeline.total - timeline.origin
    ticks = "".join(
        f'<span style="left:{100 * at / _TICKS:.0f}%">{_ms(timeline.origin + width * at / _TICKS)}</span>'
        for at in range(_TICKS + 1)
    )
    return f'<div class="axis"><div></div><div class="scale">{ticks}</div><div></div></div>'


def _row(span: Span, timeline: Timeline) -> str:
    figure = f"at {_ms(span.start)}" if span.kind == "mark" else f"{_ms(span.ms)} from {_ms(span.start)}"
    note = f"{figure}<br>{escape(span.note)}" if span.note else figure
    if span.end <= timeline.origin and timeline.origin:
        inner = '<span class="before">◂ before this chart begins</span>'
    else:
        left, width = _place(span.start, span.ms, timeline)
        size = "" if span.kind == "mark" else f";width:{width:.3f}%"
        inner = f'<div class="bar {span.kind}" style="left:{left:.3f}%{size}"></div>'
    return (
        f'<div class="row"><div>{escape(span.name)}</div><div class="track">{inner}</div>'
        f'<div class="note">{note}</div></div>'
    )


def _steps_row(timeline: Timeline, places: dict[str, int]) -> str:
    most = max(1, *(step.emitted for step in timeline.steps))
    bars = []
    for number, step in enumerate(timeline.steps, 1):
        left, width = _place(step.start, step.ms, timeline)
        height = 100 * step.emitted / most
        bars.append(
            f'<div class="bar p{places.get(step.proposer, _COLOURS - 1)}" title="{escape(_told(number, step))}"'
            f' style="left:{left:.3f}%;width:{width:.3f}%;height:{height:.1f}%"></div>'
        )
    note = f"each bar is a step, as high as the tokens it gave ({most:,} at most)"
    if timeline.steps_left_out:
        note += f"; the last {timeline.steps_left_out:,} steps are not drawn"
    return (
        f'<div class="row steps"><div>steps</div><div class="track">{"".join(bars)}</div>'
        f'<div class="note">{note}</div></div>'
    )


def _told(number: int, step: Step) -> str:
    return (
        f"step {number}: {step.proposer} drafted {step.drafted}, {step.accepted} accepted, "
        f"{step.emitted} tokens, {step.ms:.1f} ms"
    )


def _proposers_table(timeline: Timeline, places: dict[str, int]) -> str:
    rows = []
    for one in timeline.proposers:
        share = f"{100 * one.accepted / one.drafted:.0f} %" if one.drafted else "-"
        each = f"{one.emitted / one.steps:.1f}" if one.steps else "-"
        cells = [f"{one.steps:,}", f"{one.drafted:,}", f"{one.accepted:,}", share, f"{one.emitted:,}", each]
        key = f'<span class="key p{places[one.name]}"></span>'
        name = "nobody" if one.name == "none" else one.name
        rows.append(f"<tr><td>{key}{escape(name)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    heads = ("proposer", "steps", "drafted", "accepted", "of drafted", "tokens", "tokens a step")
    return _table(heads, rows)


def _steps_table(timeline: Timeline) -> str:
    rows = [
        f"<tr><td>{number}</td><td>{escape(step.proposer)}</td><td>{step.start:.1f}</td><td>{step.ms:.1f}</td>"
        f"<td>{step.drafted}</td><td>{step.accepted}</td><td>{step.emitted}</td></tr>"
        for number, step in enumerate(timeline.steps, 1)
    ]
    heads = ("step", "proposer", "from, ms", "ms", "drafted", "accepted", "tokens")
    return f"<details><summary>Each step in figures</summary>{_table(heads, rows)}</details>"


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _place(start: float, ms: float, timeline: Timeline) -> tuple[float, float]:
    """(left, width) in percent of the track; what begins before the chart is cut at its edge."""
    width = timeline.total - timeline.origin
    first = max(start, timeline.origin)
    return 100 * (first - timeline.origin) / width, 100 * max(0.0, start + ms - first) / width


def _ms(value: float) -> str:
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"
