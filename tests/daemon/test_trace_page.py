"""`specd trace --html`: one page that holds every span, fetches nothing, and says nothing of the user's text."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, Home
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon.timeline import timeline_of
from specd.daemon.trace_page import page_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECRET = "confidential_name"
VOID = {"meta", "br", "link", "img", "input", "hr"}
DAEMON: dict[str, Any] = {
    "job": "ab-1", "time": "2026-01-02T03:04:05", "kind": "rewrite", "client": "Neovim-7", "outcome": "done",
    "code": "", "model": "weights", "language": "python", "text_chars": 373, "region_lines": 19, "prompt_tokens": 162,
    "queue_ms": 2.0, "load_ms": 0.0, "prompt_ms": 3.0, "prefill_ms": 20.0, "prefill_reused": 100, "prefill_new": 62,
    "first_token_ms": 65.0, "first_hunk_ms": 66.0, "generate_ms": 60.0, "total_ms": 90.0, "tokens": 70, "steps": 3,
    "tokens_per_step": 23.33, "hunks": 2, "lines": 3,
    "by_proposer": {"edit": {"steps": 2, "drafted": 70, "accepted": 66, "emitted": 68},
                    "none": {"steps": 1, "drafted": 0, "accepted": 0, "emitted": 2}},
    "each_step": [[65.0, "edit", 60, 58, 59], [75.0, "none", 0, 0, 2], [85.0, "edit", 10, 8, 9]],
}  # fmt: skip
EDITOR: dict[str, Any] = {
    "job": "ab-1", "time": "2026-01-02T03:04:05", "kind": "editor", "client": "Neovim-7", "outcome": "done", "hunks": 2,
    "conflicts": 0, "total_ms": 120.0,
    "spans": [
        {"name": "request", "start_ms": 1.0, "ms": 0.0}, {"name": "region received", "start_ms": 12.0, "ms": 0.0},
        {"name": "first hunk received", "start_ms": 77.0, "ms": 0.0},
        {"name": "apply", "start_ms": 78.0, "ms": 8.0, "hunks": 1, "first": 0, "version": 1, "result": "applied",
         "reply_ms": 4.0},
        {"name": "apply", "start_ms": 100.0, "ms": 9.0, "hunks": 1, "first": 1, "version": 2, "result": "refused",
         "reply_ms": 9.0},
    ],
}  # fmt: skip


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: dict[str, str] = {}
        self.text: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)


def rows_of(page: str) -> dict[str, str]:
    """The chart's rows: name, and what is said of it."""
    found = re.findall(
        r'<div class="row[^"]*"><div>(.*?)</div><div class="track">.*?<div class="note">(.*?)</div>', page
    )
    return dict(found)


def test_the_page_holds_every_span_of_the_daemon_and_the_editor() -> None:
    page = page_of([timeline_of("ab-1", [DAEMON, EDITOR])])
    rows = rows_of(page)
    assert list(rows) == [
        "reach the daemon", "queue", "tokenise", "prefill", "decode", "steps", "first token", "first hunk",
        "first hunk received", "apply hunk 1", "first hunk in the buffer", "apply hunk 2",
    ]  # fmt: skip
    assert rows["prefill"] == "20 ms from 15 ms<br>62 tokens new, 100 reused"
    assert rows["apply hunk 1"] == "8.0 ms from 78 ms<br>answered after 4.0 ms, shown after 8.0 ms"
    assert rows["first hunk in the buffer"] == "at 86 ms"  # the end of the edit that showed it
    assert rows["apply hunk 2"].endswith("answered after 9.0 ms, refused")
    assert rows["decode"].endswith("70 tokens in 3 steps")
    assert page.count('title="step ') == 3
    assert "edit drafted 60, 58 accepted, 59 tokens, 40.0 ms" in page
    text = " ".join(Page(page).text)
    for told in ("total", "23.3", "tokens a step (70 in 3)", "edit 2 70 66 94 % 68 34.0", "nobody 1 0 0 - 2 2.0"):
        assert told in text, told


def test_a_cancel_shows_how_long_the_job_went_on() -> None:
    cancelled = {**DAEMON, "outcome": "cancelled", "cancel_to_idle_ms": 15.0}
    rows = rows_of(page_of([timeline_of("ab-1", [cancelled])]))
    assert rows["cancelled"] == "15 ms from 75 ms<br>from the cancel until nothing of the job ran"


def test_the_editor_hears_of_nothing_before_the_daemon_told_it() -> None:
    late = {**EDITOR, "spans": [dict(span) for span in EDITOR["spans"]]}
    late["spans"][1]["start_ms"] = 40.0  # the region's event was read late; the hunk's was not
    starts = {span.name: span.start for span in timeline_of("ab-1", [DAEMON, late]).spans}
    assert starts["first hunk"] <= starts["first hunk received"]
    assert starts["queue"] >= 1.0


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    page = page_of([timeline_of("ab-1", [DAEMON, EDITOR])])
    assert Page(page).links == []
    for word in ("<script", "url(", "@import", "http:", "https:", "javascript"):
        assert word not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_what_no_field_of_the_timeline_holds_does_not_come_out() -> None:
    leaky = {**DAEMON, "instruction": SECRET, "notes": [SECRET]}
    spans = [{**span, "text": SECRET, "reason": SECRET} for span in EDITOR["spans"]]
    page = page_of([timeline_of("ab-1", [leaky, {**EDITOR, "spans": spans, "message": SECRET}])])
    assert SECRET not in page


def test_names_are_escaped() -> None:
    evil = "<script>alert('x')</script>&\"'"
    steps = {"by_proposer": {evil: DAEMON["by_proposer"]["edit"]}, "each_step": [[65.0, evil, 1, 1, 1]]}
    page = page_of([timeline_of(evil, [{**DAEMON, **steps, "client": evil, "model": evil, "language": evil}, EDITOR])])
    assert "<script" not in page
    assert evil in " ".join(Page(page).text)


values = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-1, 1e7)
    | st.text(max_size=5)
    | st.just([])
    | st.just({})
)


@given(
    st.dictionaries(st.sampled_from(sorted(DAEMON)), values), st.dictionaries(st.sampled_from(sorted(EDITOR)), values)
)
def test_records_of_other_versions_still_make_a_page(daemon: dict[str, Any], editor: dict[str, Any]) -> None:
    """Fields that are missing or of another kind are left out."""
    for records in ([{**DAEMON, **daemon}, {**EDITOR, **editor}], [daemon], [{**editor, "kind": "editor"}]):
        Page(page_of([timeline_of("ab-1", records)]))


def test_a_long_wait_for_the_model_does_not_squeeze_the_rest() -> None:
    page = page_of(
        [timeline_of("ab-1", [{**DAEMON, "load_ms": 60000.0, "first_token_ms": 60065.0, "total_ms": 60090.0}])]
    )
    assert "before this chart begins" in page
    width = re.search(r"<div>prefill</div>.*?width:([\d.]+)%", page)
    assert width is not None
    assert float(width[1]) > 10


def test_the_command_writes_the_page_of_a_job_of_the_latest_or_of_several(warm: Home) -> None:
    for name in ("one.py", "two.py"):
        warm.edit(warm.write(name, GRID + f"# {SECRET}\n"), "--dry-run")
    jobs = [json.loads(line)["job"] for line in warm.run("trace", "-n", 2, "--json").stdout.splitlines()]
    for args, expected in (((jobs[0],), jobs[:1]), ((), jobs[1:]), (("-n", 2), jobs)):
        done = warm.run("trace", *args, "--html", "page.html")
        assert (done.returncode, done.stdout) == (0, "")
        page = (warm.work / "page.html").read_text(encoding="utf-8")
        assert re.findall(r"<h1>Job (.*?)</h1>", page) == expected
        assert SECRET not in page
        assert {"queue", "tokenise", "prefill", "first token", "first hunk", "decode", "steps"} <= set(rows_of(page))
    assert warm.run("trace", jobs[0], "--html", "-").stdout.startswith("<!doctype html>")


def test_what_cannot_be_written_is_said(warm: Home) -> None:
    warm.edit(warm.write("three.py", GRID), "--dry-run")
    done = warm.run("trace", "--html", "no/such/folder.html")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["specd: cannot write no/such/folder.html: No such file or directory."]
    assert warm.run("trace", "none-9", "--html", "page.html").returncode == 1


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to look at the page with (apt install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_every_bar_inside_of_its_track(tmp_path: Path, scheme: str) -> None:
    """Chromium lays the page out; a script that the test adds, and the page's own policy is lifted for, measures it."""
    page = page_of([timeline_of("ab-1", [DAEMON, EDITOR])])
    measure = """<script>
    const rows = [...document.querySelectorAll('.row')].map(row => {
      const track = row.querySelector('.track').getBoundingClientRect();
      return [row.firstChild.textContent, [...row.querySelectorAll('.bar')].map(bar => {
        const box = bar.getBoundingClientRect();
        return [box.width > 0 && box.height > 0, box.left >= track.left - 2 && box.right <= track.right + 4,
                getComputedStyle(bar).backgroundColor != getComputedStyle(row.querySelector('.track')).backgroundColor];
      })];
    });
    document.title = JSON.stringify({rows, paper: getComputedStyle(document.body).backgroundColor});
    </script></body>"""
    page = re.sub(r"<meta http-equiv.*?>", "", page).replace("</body>", measure)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    shade = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    command = [str(CHROMIUM), *flags, shade, f"--user-data-dir={tmp_path}/profile", "--dump-dom"]
    done = subprocess.run([*command, (tmp_path / "page.html").as_uri()], capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None, done.stderr
    seen = json.loads(title[1])
    assert seen["paper"] == ("rgb(22, 24, 28)" if scheme == "dark" else "rgb(252, 252, 250)")
    assert len(seen["rows"]) == 12
    for name, bars in seen["rows"]:
        assert bars, name
        assert all(all(bar) for bar in bars), name
