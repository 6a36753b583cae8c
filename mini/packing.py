"""Edits as packs of tokens: a fixed number of positions that hold many documents one after the other.

A document is a prompt and its answer in the form of `specd.daemon.rewrite.prompt` (the one source). Only answer
tokens carry
loss; places where copying is not enough carry more of it. Worker processes make packs; each has its own queue, read
in turn, so the same seed gives the same packs in the same order.
"""

import multiprocessing as mp
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from queue import Empty, Full
from typing import Any

import numpy as np
import numpy.typing as npt

from specd.daemon.rewrite.prompt import region_answer, region_message
from specd.mini.edits import Edit, EditMaker, SourceFile
from specd.mini.tokenizer import END, START, FastEncoder

IGNORE = -100  # label of an unused row
MAX_DOCUMENTS = 208
# Loss weights; a token that only copies has 1.
AMBIGUOUS, UNSEEN, NAMED, FIRST = 3.0, 4.0, 4.0, 8.0

Encode = Callable[[str], list[int]]
Ids = npt.NDArray[np.int32]

# (from this part of training on, ((share of the regions, longest region in characters), ...))
SIZES: tuple[tuple[float, tuple[tuple[float, int], ...]], ...] = (
    (0.0, ((1.0, 2500),)),
    (0.05, ((0.58, 2500), (0.25, 4500), (0.17, 8600))),
    (0.65, ((0.38, 2500), (0.24, 4500), (0.38, 8600))),
)


@dataclass(frozen=True)
class Pack:
    """tokens, positions: [T] int32; bounds: [MAX_DOCUMENTS] int32, where documents start and end, padded with T;
    rows: [T / 2 + 2048] int32, the positions that predict an answer token; labels, weights: of those rows."""

    tokens: Ids
    bounds: Ids
    rows: Ids
    labels: npt.NDArray[np.int16]
    weights: npt.NDArray[np.float16]
    positions: Ids

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.tokens, self.bounds, self.rows, self.labels, self.weights, self.positions


def row_count(size: int) -> int:
    """Rows with loss that a pack of `size` positions can hold."""
    return size // 2 + min(2048, size // 4)


def encode_edit(edit: Edit, encode: Encode, tag: str) -> tuple[list[int], list[int]]:
    """Token ids of the prompt (through the assistant header) and of the answer (through <|im_end|>)."""
    message = region_message(tag, edit.before, edit.instruction)
    prompt = [START, *encode("user\n" + message), END, *encode("\n"), START, *encode("assistant\n")]
    return prompt, [*encode(region_answer(tag, edit.after)), END]


def loss_weights(
    prompt: Sequence[int], answer: Sequence[int], named: Sequence[int] = (), first: Sequence[int] = ()
) -> npt.NDArray[np.float16]:
    """[len(answer)]: UNSEEN where the last three tokens never led to this token in the prompt, AMBIGUOUS where they
    also led to another one, NAMED where the token is one of `named`, FIRST where it is one of `first` (with these a
    name begins: is it the one that is meant, or one that begins like it?), 1 where the prompt settles the token."""
    p = np.array(prompt, np.int64)
    known = np.unique(p[:-3] << 39 | p[1:-2] << 26 | p[2:-1] << 13 | p[3:])
    contexts = known >> 13
    a = np.array([*prompt[-3:], *answer], np.int64)
    here = a[:-3] << 26 | a[1:-2] << 13 | a[2:-1]
    choices = np.searchsorted(contexts, here, "right") - np.searchsorted(contexts, here, "left")
    pairs = here << 13 | a[3:]
    at = np.minimum(np.searchsorted(known, pairs), len(known) - 1)
    weights = np.where(choices > 1, AMBIGUOUS, 1.0)
    weights = np.where(_one_of(named)[a[3:]], NAMED, weights)
    weights = np.where(known[at] == pairs, weights, UNSEEN)
    return np.where(_one_of(first)[a[3:]], FIRST, weights).astype(np.float16)


def _one_of(ids: Sequence[int]) -> npt.NDArray[np.bool_]:
    """[2^13]: whether a token is one of `ids`."""
    mask = np.zeros(1 << 13, np.bool_)
    mask[np.array(ids, np.int64)] = True
    return mask


def spoken_of(edit: Edit, encode: FastEncoder) -> tuple[list[int], list[int]]:
    """(tokens of what the edit speaks of, those with which its names begin); no names: the instruction's words.

    A pair of which one begins with an underscore or a quote counts for the first list only: these are everywhere.
    """
    if not edit.names:
        return encode.words(edit.instruction), []
    half = len(edit.names) // 2
    pairs = list(zip(edit.names[:half], edit.names[half:], strict=True))
    first = [encode(name)[0] for pair in pairs if not any(name[:1] in "_'\"" for name in pair) for name in pair]
    return [id_ for name in edit.names for id_ in encode.words(name)], first


class Packer:
    """Collects documents until one does not fit."""

    def __init__(self, size: int):
        self.size = size
        self.ids: list[int] = []
        self.bounds = [0]
        self.rows: list[int] = []
        self.labels: list[int] = []
        self.weights: list[npt.NDArray[np.float16]] = []

    def fits(self, prompt: Sequence[int], answer: Sequence[int]) -> bool:
        return (
            len(self.ids) + len(prompt) + len(answer) <= self.size
            and len(self.rows) + len(answer) <= row_count(self.size)
            and len(self.bounds) < MAX_DOCUMENTS - 16
        )

    def add(
        self, prompt: list[int], answer: list[int], weights: npt.NDArray[np.float16] | None = None
    ) -> tuple[int, int]:
        """Append a document; gives the half-open range of its rows."""
        start = len(self.rows)
        first = len(self.ids) + len(prompt) - 1
        self.rows += range(first, first + len(answer))
        self.labels += answer
        self.weights.append(np.ones(len(answer), np.float16) if weights is None else weights)
        self.ids += prompt
        self.ids += answer
        self.bounds.append(len(self.ids))
        return start, len(self.rows)

    def pack(self) -> Pack:
        size, rows = self.size, row_count(self.size)
        bounds = list(self.bounds)
        while bounds[-1] < size:  # padding, in short documents
            bounds.append(min(size, bounds[-1] + 6000))
        tokens, ends = np.zeros(size, np.int32), np.full(MAX_DOCUMENTS, size, np.int32)
        tokens[: len(self.ids)] = self.ids
        ends[: len(bounds)] = bounds
        where, labels, weights = np.zeros(rows, np.int32), np.full(rows, IGNORE, np.int16), np.zeros(rows, np.float16)
        where[: len(self.rows)], labels[: len(self.labels)] = self.rows, self.labels
        if self.weights:
            weights[: len(self.labels)] = np.concatenate(self.weights)
        starts = np.repeat(np.array(bounds[:-1]), np.diff(bounds))
        return Pack(tokens, ends, where, labels, weights, (np.arange(size) - starts).astype(np.int32))


def packs(
    maker: EditMaker, encode: FastEncoder, size: int, longest: int, sizes: Callable[[], Sequence[tuple[float, int]]]
) -> Iterator[Pack]:
    """Packs without end. Documents over `longest` tokens are left out; what does not fit waits for the next."""
    waiting: list[tuple[list[int], list[int], npt.NDArray[np.float16]]] = []
    while True:
        packer, missed = Packer(size), 0
        while missed < 5 and len(packer.bounds) < MAX_DOCUMENTS - 16:
            if waiting and not missed:
                document = waiting.pop(0)
            else:
                edit = maker.make(sizes=sizes(), shortest=80, dense=True)
                tag = edit.language if maker.rng.random() < 0.6 else ""
                prompt, answer = encode_edit(edit, encode, tag)
                if len(prompt) + len(answer) > min(longest, size):
                    continue
                document = prompt, answer, loss_weights(prompt, answer, *spoken_of(edit, encode))
            if packer.fits(document[0], document[1]):
                packer.add(*document)
            else:
                missed += 1
                if len(waiting) < 8:
                    waiting.append(document)
        yield packer.pack()


def sizes_at(progress: float) -> tuple[tuple[float, int], ...]:
    return [sizes for start, sizes in SIZES if progress >= start][-1]


class PackSource:
    """Worker processes that make packs ahead of use. `progress` (0 to 1) tells them how long regions should be now."""

    def __init__(
        self,
        files: Sequence[SourceFile],
        pool: Sequence[str],
        tokenizer: Path,
        *,
        workers: int,
        seed: int,
        size: int,
        longest: int,
    ):
        context = mp.get_context("fork")  # the files are shared, not copied; start this before CUDA
        self.progress: Synchronized[float] = context.Value("d", 0.0)
        self._queues = [context.Queue(maxsize=6) for _ in range(workers)]
        self._turn = 0
        self._processes = [
            context.Process(
                target=_work,
                args=(files, pool, tokenizer, seed * 100_003 + i, size, longest, self.progress, q),
                daemon=True,
            )
            for i, q in enumerate(self._queues)
        ]
        for process in self._processes:
            process.start()

    def get(self) -> Pack:
        for _ in range(20 * len(self._queues)):
            queue = self._queues[self._turn % len(self._queues)]
            self._turn += 1
            try:
                pack: Pack = queue.get(timeout=30 if self._turn <= len(self._queues) else 2)
                return pack
            except Empty:
                continue
        raise RuntimeError("no worker makes packs")

    def close(self) -> None:
        for process in self._processes:
            process.kill()


def _work(
    files: Sequence[SourceFile], pool: Sequence[str], tokenizer: Path, seed: int, size: int, longest: int,
    progress: "Synchronized[float]", queue: "mp.Queue[Pack]",
) -> None:  # fmt: skip
    encode = FastEncoder(tokenizer)
    while True:
        maker = EditMaker(files, pool, seed)
        try:
            for pack in packs(maker, encode, size, longest, lambda: sizes_at(progress.value)):
                _put(queue, pack)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, re.error):
            # a maker stumbled over a region: say so and go on; a silent worker would stop the training
            traceback.print_exc()
            seed += 10_000_019


def _put(queue: "mp.Queue[Pack]", pack: Pack) -> None:
    while True:
        try:
            queue.put(pack, timeout=60)
            return
        except Full:
            continue
