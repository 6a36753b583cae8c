"""Jobs on the same new file: its text is read once, whoever comes first, and whoever leaves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_home import GRID, RENAME

from specd.daemon import session
from specd.daemon.events import Done, Event
from specd.daemon.generation import Prefilled
from specd.daemon.models import ModelKey
from specd.daemon.protocol import RewriteRequest, Target
from specd.daemon.settings import Settings
from specd.daemon.sources import Sources
from specd.daemon.trace import JobTrace
from specd.daemon.worker import EngineModel, load_model

LONG = GRID + "".join(f"\n\ndef step_{n}(grid):\n    return grid.get({n}, {n}) + {n}\n" for n in range(50))
ASIDE = 40  # tokens of a prompt that follow the file's text


class Rewrite:
    """A rewrite that is driven turn by turn."""

    def __init__(self, model: EngineModel, text: str = LONG, instruction: str = RENAME) -> None:
        self.events: list[Event] = []
        self.trace = JobTrace("1", "rewrite")
        asked = RewriteRequest(Target(text, "a.py"), instruction)
        self.steps = session.rewrite(asked, model, Settings(), Sources(), self.events.append, self.trace)

    def read(self) -> None:
        """Turns until the prompt is read."""
        while not self.trace.prompt_tokens:
            next(self.steps)

    def finish(self) -> None:
        for _ in self.steps:
            pass


@pytest.fixture
def new_model(edit_model: Path) -> Iterator[Callable[..., EngineModel]]:
    found: list[EngineModel] = []

    def make(**settings: int) -> EngineModel:
        key = ModelKey(str(edit_model), dflash=str(edit_model / "dflash"))
        found.append(load_model(key, Settings(**settings), lambda fraction, message: None))  # type: ignore[arg-type]
        return found[-1]

    yield make
    for model in found:
        model.unload()


def test_a_job_waits_for_one_that_reads_the_same_file_and_reads_nothing_of_it_again(
    new_model: Callable[..., EngineModel],
) -> None:
    model = new_model()
    first, second = Rewrite(model), Rewrite(model, instruction="rename cells to rows")
    assert next(first.steps) is True  # a chunk
    assert [next(second.steps) for _ in range(3)] == [False] * 3
    first.read()
    assert first.trace.prefill_new > 1000
    second.read()  # while the first one writes its answer
    assert second.trace.prefill_new < ASIDE
    assert second.trace.prefill_reused > 1000
    first.steps.close()
    second.steps.close()


def test_a_job_goes_on_from_where_a_reader_was_cancelled(new_model: Callable[..., EngineModel]) -> None:
    model = new_model()
    first, second = Rewrite(model), Rewrite(model)
    next(first.steps)
    assert next(second.steps) is False
    first.steps.close()
    second.read()
    assert second.trace.prefill_reused > 100
    assert second.trace.prefill_new > 100
    second.steps.close()


def test_a_rewrite_takes_over_from_a_prepare_in_the_middle(new_model: Callable[..., EngineModel]) -> None:
    model = new_model()
    replies: list[Prefilled] = []
    target = Target(LONG, "a.py")
    preparing = session.prepare(target, model, Settings(), JobTrace("2", "prepare"), replies.append)
    next(preparing)
    rewriting = Rewrite(model)
    assert next(rewriting.steps) is True  # at once: a background job may have no turn while a rewrite can
    assert next(preparing) is False
    rewriting.read()
    assert rewriting.trace.prefill_reused > 100
    for _ in preparing:
        pass
    assert replies[-1].reused > 1000
    assert replies[-1].new <= 1
    rewriting.steps.close()


def test_jobs_on_different_files_do_not_wait_for_each_other(new_model: Callable[..., EngineModel]) -> None:
    model = new_model()
    first, second = Rewrite(model), Rewrite(model, "x = 1\n" + LONG)
    next(first.steps)
    assert next(second.steps) is True
    first.steps.close()
    second.steps.close()


def test_what_is_shared_while_a_job_goes_on_changes_no_answer_and_all_pages_come_back(
    new_model: Callable[..., EngineModel],
) -> None:
    model, alone = new_model(), new_model(cache_memory=0)
    free = alone.status()["cache"]["free_tokens"]
    jobs = [Rewrite(model, GRID), Rewrite(model, GRID), Rewrite(model, GRID + "\n")]
    running = list(jobs)
    while running:
        running = [job for job in running if next(job.steps, None) is not None]
    expected = Rewrite(alone, GRID)
    expected.finish()
    assert isinstance(expected.events[-1], Done)
    assert {job.events[-1].sha256 for job in jobs[:2]} == {expected.events[-1].sha256}  # type: ignore[union-attr]
    assert alone.status()["cache"]["free_tokens"] == free
