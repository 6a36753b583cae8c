"""What a session asks of a model, and what it hears while the model generates. `worker` implements it on the engine."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from specd.daemon.protocol import Sampling, Speculation
from specd.daemon.rewrite.prompt import Prompt, PromptForm


@dataclass(frozen=True)
class Prefilled:
    """The prompt is in the KV cache: `reused` tokens were there already, `new` were computed, in `seconds`."""

    reused: int
    new: int
    seconds: float


@dataclass(frozen=True)
class Waits:
    """Nothing to do now: another job reads what this one needs."""


@dataclass(frozen=True)
class Stepped:
    """One verify step: `text` is what it added (whole characters), the rest are counts of tokens."""

    text: str
    proposer: str | None
    drafted: int
    accepted: int
    emitted: int


@dataclass(frozen=True)
class Ended:
    """The generation is over. "stop": the model ended its answer; otherwise a limit did."""

    reason: Literal["stop", "length", "context"]
    text: str


@dataclass(frozen=True)
class Asked:
    """What a model is asked to generate. `draft_texts`: texts whose tokens may be drafted from, the likeliest first."""

    prompt: Prompt
    pairs: list[tuple[str, str]]
    draft_texts: list[str]
    max_tokens: int
    sampling: Sampling
    speculation: Speculation


class Model(Protocol):
    """A loaded model. `window`: tokens that prompt and answer may have together."""

    name: str
    form: PromptForm
    window: int

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        ...

    def generate(self, asked: Asked) -> Generator[Prefilled | Stepped | Ended | Waits | None, None, None]:
        """One step of the model a `next()`; None is a step of the prefill. Closing it cancels. Raises EngineFailed."""
        ...

    def prepare(self, prompts: tuple[Prompt, Prompt]) -> Iterator[Prefilled | Waits | None]:
        """Prefill what the two prompts have in common at their beginning. One step a `next()`."""
        ...


class Served(Model, Protocol):
    """A model as the daemon keeps it."""

    def unload(self) -> None:
        """Give the memory back."""
        ...

    def status(self) -> dict[str, Any]:
        """For `specd status`. May be called from any thread."""
        ...
