"""The engine behind the daemon: kept prompts change only the time, cancelling leaves no trace, drafters agree."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, RENAME

from specd.daemon import session
from specd.daemon.errors import EngineFailed, InputRefused, UsageError
from specd.daemon.events import Done, Event, HunkReady, RegionChosen
from specd.daemon.generation import Asked, Ended, Model, Prefilled, Stepped
from specd.daemon.model_folder import prompt_form
from specd.daemon.models import ModelKey
from specd.daemon.protocol import ContextFile, RewriteRequest, Sampling, Speculation, Target
from specd.daemon.settings import Settings
from specd.daemon.sources import Sources
from specd.daemon.trace import JobTrace
from specd.daemon.worker import EngineModel, load_model
from specd.engine import Sequence

# 200 lines: GRID is 17, and what follows differs from line to line
LONG = GRID + "".join(f"\n\ndef step_{n}(grid):\n    return grid.get({n}, {n}) + {n}\n" for n in range(50))


@pytest.fixture(scope="module")
def model(edit_model: Path) -> Iterator[EngineModel]:
    found = load_model(ModelKey(str(edit_model)), Settings(), lambda fraction, message: None)
    yield found
    found.unload()


def fresh(edit_model: Path, dflash: str = "", **settings: int) -> EngineModel:
    key = ModelKey(str(edit_model), dflash=dflash)
    return load_model(key, Settings(**settings), lambda fraction, message: None)  # type: ignore[arg-type]


def run(model: Model, request: RewriteRequest, *, steps: int | None = None) -> tuple[list[Event], JobTrace]:
    """The events and the trace of a rewrite, cancelled after `steps` turns if that is given."""
    events: list[Event] = []
    trace = JobTrace("1", "rewrite")
    job = session.rewrite(request, model, Settings(), Sources(), events.append, trace)
    for count, _ in enumerate(job, 1):
        if count == steps:
            job.close()
    return events, trace


def prepare(model: Model, target: Target) -> Prefilled:
    found: list[Prefilled] = []
    for _ in session.prepare(target, model, Settings(), JobTrace("1", "prepare"), found.append):
        pass
    return found[-1]


def answer(events: list[Event]) -> tuple[list[HunkReady], str]:
    assert isinstance(events[-1], Done), events[-1]
    return [event for event in events if isinstance(event, HunkReady)], events[-1].sha256


def request(text: str = GRID, instruction: str = RENAME, **more: object) -> RewriteRequest:
    return RewriteRequest(Target(text, "a.py"), instruction, **more)


def test_a_kept_prompt_does_not_change_the_answer(model: EngineModel, edit_model: Path) -> None:
    cold, trace = run(fresh(edit_model), request())
    assert trace.prefill_reused == 0
    run(model, request())
    warm, trace = run(model, request())
    assert trace.prefill_new == 0
    assert answer(warm) == answer(cold)


@pytest.mark.parametrize("drafter", ["", "dflash"])
def test_after_prepare_the_first_token_costs_less_than_three_steps(edit_model: Path, drafter: str) -> None:
    if drafter and not (edit_model / drafter / "config.json").exists():
        pytest.skip("this model has no DFlash drafter")
    model = fresh(edit_model, str(edit_model / drafter) if drafter else "")
    assert len(LONG.splitlines()) > 200
    prepare(model, Target(LONG, "a.py"))
    events, trace = run(model, request(LONG))
    assert trace.prefill_new < 30  # the instruction and the template's end
    assert trace.prefill_reused > 1000
    assert isinstance(events[0], RegionChosen)
    # forward passes until the first text: chunks of prefill, then one verify step
    asked = request(LONG, "rename cells to rows")
    job = session.rewrite(asked, model, Settings(), Sources(), events.append, again := JobTrace("2", "rewrite"))
    turns = 0
    while again.first_token is None:
        next(job)
        turns += 1
    job.close()
    assert turns <= 3  # one chunk, the word that the prefill is done, one step
    assert again.steps == 1
    assert again.prefill_new < 30


def test_typing_reads_again_only_what_follows_the_change(edit_model: Path) -> None:
    model = fresh(edit_model)
    whole = prepare(model, Target(LONG, "a.py"))
    assert (whole.reused, whole.new > 1000) == (0, True)
    last = LONG.replace("def step_49(grid)", "def step_49(mesh)")
    at_the_end = prepare(model, Target(last, "a.py"))
    assert at_the_end.new < 60
    assert at_the_end.reused > 0.9 * whole.new
    at_the_top = prepare(model, Target(LONG.replace("class Grid", "class Net"), "a.py"))
    assert at_the_top.new > 0.9 * whole.new


def test_cancelling_anywhere_gives_all_pages_back_and_changes_no_later_answer(edit_model: Path) -> None:
    model = fresh(edit_model, cache_memory=0)  # nothing is kept, so every page must come back
    pool = model.status()["cache"]
    asked = request(GRID * 2, speculation=Speculation(k=15))
    expected, trace = run(model, asked)
    turns = trace.steps + 4
    for steps in range(1, turns, max(1, turns // 8)):
        run(model, asked, steps=steps)
        assert model.status()["cache"]["free_tokens"] == pool["free_tokens"]
    again, _ = run(model, asked)
    assert answer(again) == answer(expected)


@pytest.mark.parametrize(
    "speculation",
    [Speculation(k=0), Speculation(k=3), Speculation(proposer="edit"), Speculation(proposer="ngram"), Speculation()],
)
def test_every_way_of_drafting_gives_the_same_answer(model: EngineModel, speculation: Speculation) -> None:
    expected, _ = run(model, request(speculation=Speculation(k=0)))
    found, trace = run(model, request(speculation=speculation))
    assert answer(found) == answer(expected)
    assert (sum(count.drafted for count in trace.by_proposer.values()) > 0) == (speculation.k != 0)


def test_a_draft_model_and_a_block_drafter_give_the_same_answer(
    model: EngineModel, drafted: EngineModel, edit_model: Path
) -> None:
    expected, _ = run(model, request())
    for proposer in ("auto", "draft_model"):
        found, trace = run(drafted, request(speculation=Speculation(proposer=proposer)))
        assert answer(found) == answer(expected)
    assert set(trace.by_proposer) == {"draft_model"}
    if (edit_model / "dflash" / "config.json").exists():
        key = ModelKey(str(edit_model), dflash=str(edit_model / "dflash"))
        block = load_model(key, Settings(), lambda fraction, message: None)
        prepare(block, Target(GRID, "a.py"))
        found, trace = run(block, request())
        assert answer(found) == answer(expected)
        assert trace.prefill_reused > 0
        found, trace = run(block, request(speculation=Speculation(proposer="dflash", k=4)))
        assert answer(found) == answer(expected)
        assert set(trace.by_proposer) == {"dflash"}


@pytest.fixture(scope="module")
def drafted(edit_model: Path) -> Iterator[EngineModel]:
    """The model as its own draft model, and without a block drafter."""
    found = load_model(ModelKey(str(edit_model), draft=str(edit_model)), Settings(), lambda fraction, message: None)
    yield found
    found.unload()


def sampled(model: EngineModel, seed: int, speculation: Speculation) -> tuple[str, int, int]:
    """The text of an answer drawn at temperature 1.5, and the tokens drafted and accepted for it."""
    region = session.choose_region(Target(GRID, "a.py"), "python", Settings())
    prompt = session.make_prompt(Target(GRID, "a.py"), region, RENAME, "python", model)
    asked = Asked(prompt, [], [], 60, Sampling(temperature=1.5, seed=seed), speculation)
    steps = [event for event in model.generate(asked) if isinstance(event, Stepped)]
    return (
        "".join(step.text for step in steps),
        sum(step.drafted for step in steps),
        sum(step.accepted for step in steps),
    )


def test_a_draft_model_that_samples_has_a_rule_of_its_own(drafted: EngineModel) -> None:
    exact = Speculation(proposer="draft_model")
    own = exact.replace(sample_drafts=True)
    found = [sampled(drafted, seed, own) for seed in range(6)]
    assert found == [sampled(drafted, seed, own) for seed in range(6)], "one proposer: a seed repeats"
    plain = [sampled(drafted, seed, Speculation(k=0))[0] for seed in range(6)]
    assert [text for text, _, _ in found] != plain
    assert [sampled(drafted, seed, exact)[0] for seed in range(6)] == plain
    assert sum(accepted for _, _, accepted in found) > 0.9 * sum(drafts for _, drafts, _ in found) > 0, "p is q here"


def test_who_is_asked_for_and_is_not_there_is_named_and_nothing_is_kept(drafted: EngineModel) -> None:
    before = drafted.status()["cache"]["free_tokens"]
    with pytest.raises(UsageError, match=r"no dflash drafter was loaded; name one with --dflash DRAFTER"):
        run(drafted, request(GRID.replace("trace", "track"), speculation=Speculation(proposer="dflash")))
    assert drafted.status()["cache"]["free_tokens"] == before


class Listening:
    """A model that writes down what it is asked."""

    def __init__(self, model: EngineModel) -> None:
        self.model, self.asked = model, list[Asked]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(self, asked: Asked) -> Iterator[Prefilled | Stepped | Ended | None]:
        self.asked.append(asked)
        return self.model.generate(asked)


def test_other_open_texts_and_what_was_edited_before_are_drafted_from(model: EngineModel) -> None:
    listening, sources, events = Listening(model), Sources(), list[Event]()
    other = "def unheard_of(kettle, teapot):\n    return kettle.pour(teapot, 'earl grey', sugar=None)\n"
    for target, context in (
        (Target(GRID, "first.py"), ()),
        (Target("cups = 4\n", "second.py"), (ContextFile("/elsewhere/tea.py", other),)),
    ):
        asked = RewriteRequest(target, RENAME, context=context)
        for _ in session.rewrite(asked, listening, Settings(), sources, events.append, JobTrace("1", "rewrite")):
            pass
    edited = sources.recent("second.py", "python")
    assert edited != [GRID]
    assert listening.asked[1].draft_texts == ["cups = 4\n", other, *edited]

    how = dataclasses.replace(listening.asked[1], speculation=Speculation(proposer="ngram"))
    _, (lookup,) = model._drafting.speculative(how, {})
    tokenizer = model._loaded.tokenizer
    for quoted in (other, edited[0]):
        prompt, ids = tokenizer.encode("cups = 4\n"), tokenizer.encode(quoted)
        draft = lookup.propose(Sequence(prompt + ids[:8], len(prompt)), 10)
        assert draft.tokens.tolist() == ids[8:18]
        lookup.truncate(0)


def test_kept_prompts_stay_within_their_memory(edit_model: Path) -> None:
    model = fresh(edit_model, cache_memory=8)
    for number in range(12):
        run(model, request(GRID.replace("Grid", f"Grid{number}"), f"rename Grid{number} to Mesh"))
        cache = model.status()["cache"]
        assert cache["kept_bytes"] <= cache["limit_bytes"] == 8 * 2**20
    assert cache["kept_tokens"] > 0


def test_a_sampled_answer_depends_on_the_seed_alone(model: EngineModel) -> None:
    def sampled(seed: int, k: int) -> list[HunkReady]:
        sampling = Sampling(temperature=1.5, seed=seed)
        asked = request(sampling=sampling, speculation=Speculation(k=k), max_tokens=200)
        return [event for event in run(model, asked)[0] if isinstance(event, HunkReady)]

    assert sampled(1, 0) == sampled(1, 15)
    assert any(sampled(seed, 15) != sampled(1, 15) for seed in range(2, 6))


def test_what_a_model_answers_comes_as_prefill_steps_and_an_end(model: EngineModel) -> None:
    region = session.choose_region(Target(GRID, "a.py"), "python", Settings())
    prompt = session.make_prompt(Target(GRID, "a.py"), region, RENAME, "python", model)
    asked = Asked(prompt, [], [], 2000, Sampling(), Speculation(k=0))
    kinds = [type(event) for event in model.generate(asked) if event is not None]
    assert kinds[0] is Prefilled
    assert kinds[-1] is Ended
    assert set(kinds[1:-1]) == {Stepped}


def test_a_prompt_beyond_the_window_is_refused_before_it_starts(model: EngineModel) -> None:
    with pytest.raises(InputRefused, match="tokens"):
        run(model, request("x = [" + "1, 22, " * 9000 + "]\n"))


def test_the_models_folder_tells_the_form_of_its_prompts(tmp_path: Path, tiny_folder: Callable[..., Path]) -> None:
    assert prompt_form(tmp_path) == "chat"
    (tmp_path / "specd.json").write_text('{"prompt": "region"}')
    assert prompt_form(tmp_path) == "region"
    for wrong in ("{", '{"prompt": "poem"}', "[]", "{}"):
        (tmp_path / "specd.json").write_text(wrong)
        with pytest.raises(EngineFailed, match=r"specd\.json"):
            prompt_form(tmp_path)
