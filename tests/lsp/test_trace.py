"""What a job leaves behind: a line in the editor's log, spans in its trace, a record that `specd trace` shows."""

import json
from collections.abc import Callable

from daemon_home import GRID, Home, wait_for
from scripted_editor import Editor

GetEditor = Callable[..., Editor]
SECRET = "confidential_name"


def record_of(home: Home, kind: str) -> dict[str, object]:
    """The latest record of a kind, as `specd trace --json` gives it; one without a job if there is none."""
    out = home.run("trace", "--json", "-n", 1000).stdout
    return [{"job": ""}, *(record for record in map(json.loads, out.splitlines()) if record["kind"] == kind)][-1]


def test_each_job_has_one_line_and_its_spans_where_they_are_wanted(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay, trace="messages")
    uri = at.open(GRID + f"# {SECRET}\n")
    at.rewrite(uri, "stream it")
    wait_for(lambda: len(at.of("window/logMessage")) == 1)
    (line,) = at.of("window/logMessage")
    assert line["type"] == 3
    assert " done: 3 hunks" in line["message"]
    wait_for(lambda: len(at.of("$/logTrace")) >= 8)
    traces = at.of("$/logTrace")
    text = "\n".join(trace["message"] for trace in traces)
    for name in ("queue", "prefill", "decode", "first hunk", "request", "apply"):
        assert f": {name} at " in text
    assert all("verbose" not in trace for trace in traces)
    at.notify("$/setTrace", {"value": "off"})
    before = len(at.of("$/logTrace"))
    at.rewrite(uri, "nothing")
    wait_for(lambda: len(at.of("window/logMessage")) == 2)
    assert len(at.of("$/logTrace")) == before
    at.notify("$/setTrace", {"value": "verbose"})
    at.rewrite(uri, "nothing")
    wait_for(lambda: len(at.of("$/logTrace")) > before)
    assert any("reused" in trace.get("verbose", "") for trace in at.of("$/logTrace"))
    at.close()
    assert SECRET not in json.dumps([at.of("window/logMessage"), at.of("$/logTrace")]) + at.errors()


def test_what_the_model_says_is_for_the_user_and_not_for_the_log(editor: GetEditor) -> None:
    at = editor()
    at.rewrite(at.open(GRID), "refuse")
    assert "I cannot do that" in at.wait_shown()
    wait_for(lambda: bool(at.of("window/logMessage")))
    (line,) = at.of("window/logMessage")
    assert " declined: 0 hunks" in line["message"]
    assert "I cannot" not in line["message"]


def test_specd_trace_shows_the_editors_part_beside_the_daemons(replay: Home, editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID + f"# {SECRET}\n")
    at.rewrite(uri, "stream it")
    at.wait_shown()
    before = record_of(replay, "rewrite")["job"]
    wait_for(lambda: record_of(replay, "editor")["job"] == before)
    record = record_of(replay, "editor")
    assert (record["outcome"], record["hunks"], record["conflicts"]) == ("done", 3, 0)
    applies = [span for span in record["spans"] if span["name"] == "apply"]  # type: ignore[attr-defined]
    assert sum(span["hunks"] for span in applies) == 3
    assert all(span["result"] == "applied" and span["reply_ms"] <= span["ms"] + 0.1 for span in applies)
    shown = replay.run("trace", before).stdout
    assert "first hunk received" in shown
    assert shown.count(" ms  apply ") == len(applies)
    assert SECRET not in shown
    assert "3 hunks in the buffer, 0 in conflict" in replay.run("trace").stdout
