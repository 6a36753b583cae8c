"""Traces: one record a job with counts and times, bounded on disk, and readable through `specd trace`."""

import json
from pathlib import Path

import pytest
from daemon_home import GRID, RENAME, Home

from specd.daemon import trace


def test_a_rewrite_leaves_one_record_whose_parts_add_up(warm: Home) -> None:
    path = warm.write("traced.py", GRID)
    warm.edit(path)
    (line,) = warm.run("trace", "-n", 1, "--json").stdout.splitlines()
    record = json.loads(line)
    assert (record["kind"], record["outcome"], record["language"]) == ("rewrite", "done", "python")
    assert (record["region_lines"], record["text_chars"]) == (17, len(GRID))
    assert record["prefill_reused"] + record["prefill_new"] == record["prompt_tokens"] > 0
    assert sum(count["emitted"] for count in record["by_proposer"].values()) == record["tokens"]
    assert sum(count["steps"] for count in record["by_proposer"].values()) == record["steps"]
    parts = ("queue_ms", "load_ms", "prompt_ms", "prefill_ms", "generate_ms")
    assert sum(record[part] for part in parts) <= record["total_ms"] + 1
    assert record["first_token_ms"] <= record["first_hunk_ms"] <= record["total_ms"]
    assert record["job"] in warm.run("trace", record["job"]).stdout


def test_the_second_prompt_of_a_file_reads_only_what_is_new(warm: Home) -> None:
    path = warm.write("again.py", GRID.replace("trace", "again"))
    warm.run("edit", path.name, "--dry-run", "-i", RENAME)
    warm.run("edit", path.name, "--dry-run", "-i", "rename cells to rows")
    first, second = (json.loads(line) for line in warm.run("trace", "-n", 2, "--json").stdout.splitlines())
    assert second["prefill_reused"] > 0.9 * first["prompt_tokens"]
    assert second["prefill_new"] < 20


def test_trace_says_when_there_is_nothing(home: Home) -> None:
    done = home.run("trace")
    assert done.returncode == 1
    assert "no record" in done.stderr
    assert home.run("trace", "-n", 0).returncode == 2


def test_the_file_starts_anew_at_its_limit_and_two_older_ones_are_kept(tmp_path: Path) -> None:
    file = trace.TraceFile(tmp_path / "trace.jsonl", limit=1000)
    for number in range(100):
        file.append({"job": str(number), "filler": "x" * 80})
    sizes = sorted(path.stat().st_size for path in tmp_path.iterdir())
    assert len(sizes) == 3
    assert max(sizes) <= 1000
    jobs = [int(record["job"]) for record in trace.read(file.path)]
    assert jobs == list(range(jobs[0], 100))


def test_lines_that_are_no_records_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"job": "a"}\nbroken {\n[1]\n\xff\xfe\n{"job": "b"}\n{"job": "c"')
    assert [record["job"] for record in trace.read(path)] == ["a", "b"]


def test_a_folder_that_cannot_be_written_loses_records_and_nothing_else(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    trace.TraceFile(blocked / "trace.jsonl", limit=1000).append({"job": "a"})
    assert blocked.read_text() == ""


@pytest.mark.parametrize(("count", "words"), [(0, "0 edits"), (1, "1 edit ·"), (2, "2 edits")])
def test_an_editors_record_counts_its_edits(count: int, words: str) -> None:
    record = {"kind": "editor", "time": "", "job": "ab-1", "outcome": "done", "hunks": count, "conflicts": 0}
    text = trace.describe({**record, "total_ms": 5, "spans": [{"name": "apply"}] * count})
    assert words in text
    assert words.replace("edit", "hunk").replace(" ·", " in") in text


def test_a_record_in_words() -> None:
    record = trace.JobTrace("ab-1", "rewrite")
    record.step("edit", 10, 9, 10)
    record.step(None, 0, 0, 1)
    record.outcome, record.first_hunk, record.total = "done", 0.012, 0.05
    text = trace.describe(record.record())
    assert "ab-1" in text
    assert "first hunk 12 ms" in text
    assert "11 tokens in 2 steps (5.5 a step) · 82 % drafted · total 50 ms" in text
