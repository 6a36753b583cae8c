"""The replay harness: what a perfect target emits, how steps are counted, and the report's shape."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import replay
import replay_cases
from replay_proposers import PROPOSERS

from specd.engine.tokenizer import Tokenizer

BEFORE = "".join(f"line_{n} = compute(total, {n})\n" + ("\n" if n % 5 == 4 else "") for n in range(30))


def an_edit(**changes: Any) -> dict[str, Any]:
    fields = {
        "id": "e1",
        "kind": "rename",
        "language": "python",
        "instruction": "Rename total to amount.",
        "before": BEFORE,
        "after": BEFORE.replace("total", "amount"),
    }
    return fields | changes


FIX = an_edit(id="e2", kind="fix", instruction="Start at one.", after=BEFORE.replace("(total, 12)", "(total, 13)"))


@pytest.fixture
def folder(tiny_folder: Callable[..., Path]) -> Path:
    return tiny_folder()


def test_a_region_is_the_changed_lines_up_to_blank_ones_and_four_at_least() -> None:
    before = [f"{n}\n" for n in range(20)]
    before[2] = before[12] = "\n"
    after = [*before[:8], "x\n", "y\n", *before[9:]]
    assert replay_cases.changed_span(before, after) == (3, 13, 3, 14)
    before[7] = before[10] = "\n"
    assert replay_cases.changed_span(before, [*before[:8], "x\n", *before[9:]]) == (4, 13, 4, 13)
    assert replay_cases.changed_span(before, [*before, "x\n"]) == (13, 20, 13, 21)


def test_the_answer_is_the_new_region_a_fence_and_the_end(folder: Path) -> None:
    tokenizer = Tokenizer(folder)
    case = replay_cases.build_case(FIX, tokenizer, "region")
    region = BEFORE[BEFORE.index("line_9") : BEFORE.index("line_16")]
    assert case.predicted == region + "```"
    assert tokenizer.decode(case.answer) == region.replace("(total, 12)", "(total, 13)") + "```"
    assert case.answer[-1] == case.end_token
    assert replay_cases.build_case(FIX, tokenizer, "file").predicted == BEFORE + "```"
    assert tokenizer.decode(case.prompt).count(BEFORE) == 1


@pytest.mark.parametrize("name", sorted(PROPOSERS))
def test_every_proposer_emits_exactly_the_answer(folder: Path, name: str) -> None:
    case = replay_cases.build_case(FIX, Tokenizer(folder), "region")
    steps = replay.replay(case, PROPOSERS[name](case, Tokenizer(folder), 16), 16)
    assert sum(step.emitted for step in steps) == len(case.answer)
    assert all(step.emitted == step.accepted + 1 and step.accepted <= step.drafted <= 16 for step in steps)
    if name == "plain":
        assert len(steps) == len(case.answer)


def test_a_draft_rides_on_the_prefill_unless_told_otherwise(folder: Path) -> None:
    case = replay_cases.build_case(FIX, Tokenizer(folder), "region")
    for plain_prefill in (False, True):
        proposer = PROPOSERS["edit"](case, Tokenizer(folder), 16)
        assert (replay.replay(case, proposer, 16, plain_prefill=plain_prefill)[0].drafted == 0) == plain_prefill


def test_the_report_counts_by_kind_and_in_all(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "edits.jsonl"
    corpus.write_text("\n".join(map(json.dumps, (an_edit(), FIX, an_edit(id="e3", instruction="Find a better name.")))))
    arguments = ["--corpus", str(corpus), "--tokenizer", str(folder), "--jobs", "1", "-k", "32"]
    assert replay.main([*arguments, "--proposer", "edit", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["by_kind"]) == {"rename", "fix"}
    assert (result["by_kind"]["rename"]["edits"], result["noinstr"]["edits"], result["all"]["edits"]) == (2, 1, 3)
    for row in (*result["by_kind"].values(), result["all"]):
        assert set(row) == {"edits", "mean", "aggregate", "drafted", "rejected", "draft_ms_p50", "draft_ms_p95"}
    assert result["all"]["mean"] > 10
    assert replay.main([*arguments, "--proposer", "plain"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:4] == ["all", "3", "1.0", "1.0"]


def test_a_cost_for_each_drafted_token_lowers_the_figures(folder: Path) -> None:
    case = replay_cases.build_case(FIX, Tokenizer(folder), "region")
    run = replay.Run("e", "fix", True, replay.replay(case, PROPOSERS["edit"](case, Tokenizer(folder), 16), 16), 0.0)
    drafted = sum(step.drafted for step in run.steps)
    assert replay.summarise([run], 0.5)["aggregate"] == run.tokens / (len(run.steps) + 0.5 * drafted)


@pytest.mark.parametrize("line", ["{", '{"kind": "fix"}'])
def test_a_broken_corpus_is_named_with_its_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    corpus = tmp_path / "edits.jsonl"
    corpus.write_text(json.dumps(FIX) + "\n" + line)
    assert replay.main(["--corpus", str(corpus), "--tokenizer", str(folder)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_the_corpus_beside_the_checkout_gives_the_reference_figures(
    edit_corpus: Path, qwen_tokenizer_folder: Path
) -> None:
    edits = replay_cases.read_edits(edit_corpus)[::9]
    folder = str(qwen_tokenizer_folder)
    means = {}
    for name, k in (("ngram", 15), ("edit", 32)):
        runs = replay.run_corpus(edits, folder, name, k, "region", jobs=1)
        means[name] = replay.report(runs)["all"]["mean"]
    assert means["edit"] > 2 * means["ngram"]


@pytest.mark.parametrize(
    "line", ["5", "null", '"kind instruction before after"', "[" * 100_000, "{", '{"kind": "fix"}']
)
def test_a_line_that_is_no_edit_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(FIX) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        replay_cases.read_edits(path)


def test_only_a_line_feed_ends_a_line_of_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(an_edit(before="a\u2028b\x85c\n"), ensure_ascii=False) + "\n", encoding="utf-8")
    assert replay_cases.read_edits(path)[0]["before"] == "a\u2028b\x85c\n"


@pytest.mark.parametrize(
    "bad",
    [["-k", "0"], ["-k", "-3"], ["--alpha", "-1"], ["--alpha", "nan"], ["--jobs", "0"], ["--tokenizer", "/nowhere"]],
)
def test_bad_arguments_are_refused(folder: Path, tmp_path: Path, bad: list[str]) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(FIX) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        replay.main(["--corpus", str(path), "--tokenizer", str(folder), *bad])
    assert end.value.code == 2


def broken_folder(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def folder_without_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")


def broken_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{% if %}"}')


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (broken_folder, "tokenizer.json is broken"),
        (folder_without_template, "no chat template"),
        (broken_template, "the chat template is broken"),
    ],
)
def test_a_folder_that_no_prompt_can_be_made_with_is_named_in_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], breaks: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(FIX) + "\n", encoding="utf-8")
    breaks(folder)
    with pytest.raises(SystemExit) as end:
        replay.main(["--corpus", str(path), "--tokenizer", str(folder)])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("key", ["instruction", "before", "after", "language"])
def test_half_a_character_in_the_corpus_is_named_with_its_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(FIX) + "\n" + json.dumps(FIX | {key: "a\ud800"}) + "\n", encoding="utf-8")
    assert replay.main(["--corpus", str(path), "--tokenizer", str(folder)]) == 2
    assert f"line 2: half a character, or no text, under {key}\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_corpus_without_edits_is_an_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text(text, encoding="utf-8")
    assert replay.main(["--corpus", str(path), "--tokenizer", str(folder)]) == 2
    assert capsys.readouterr().err == f"replay: no edits in {path}\n"
