"""Tokenizers and a perfect target for the tests of proposers that follow a text."""

from dataclasses import dataclass, field
from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from specd.engine import Committed, Proposer, Sequence
from specd.engine.choice import accept
from specd.engine.tokenizer import Tokenizer

ROOT = Path(__file__).parents[1]
# A line end goes with what stands before it, as in Qwen's and most others; or with the indentation behind it.
SPLITS = {
    "behind": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "before": r"\r?\n[ \t]*|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}|_+| ?[^\s\p{L}\p{N}_]+ ?|[ \t]+|\s+",
}


def train(folder: Path, split: str) -> Tokenizer:
    """A byte-level BPE tokenizer of 1500 tokens, trained on this repository's own text."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLITS[split]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
        show_progress=False,
    )
    texts = [(ROOT / "engine" / name).read_text() for name in ("model.py", "kv_cache.py", "generate.py", "sampling.py")]
    inner.train_from_iterator(texts, trainer)
    inner.save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


@dataclass
class Walk:
    """What a proposer drafted while a perfect target wrote `answer`: (drafted, accepted) of each step."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def emitted(self) -> int:
        return sum(accepted + 1 for _, accepted in self.steps)


def walk(proposer: Proposer, prompt: list[int], answer: list[int], k: int) -> Walk:
    """Emit `answer` behind `prompt` in verify steps. Fails where a draft is longer than asked."""
    seq, done, walked = Sequence(list(prompt), len(prompt)), 0, Walk()
    while done < len(answer):
        draft = proposer.propose(seq, k)
        assert draft.size <= min(k, proposer.max_k)
        drafted = draft.tokens.tolist()
        target = [*answer[done : done + len(drafted) + 1], *[-1] * len(drafted)][: len(drafted) + 1]
        emitted = [token for token in accept(drafted, None, target).tokens if token >= 0]
        seq.tokens.extend(emitted)
        done += len(emitted)
        proposer.observe(seq, Committed(emitted, proposer.name, len(drafted), len(emitted) - 1))
        walked.steps.append((len(drafted), len(emitted) - 1))
    return walked
