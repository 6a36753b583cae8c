"""The bundled model's tokenizer: byte-level BPE over a pre-tokenizer that never glues a separator to a word.

An identifier therefore has the same tokens wherever it stands (after a space, a bracket, a dot, at the start of an
instruction), so a rename replaces one fixed token sequence by another; a line is one "newline + indentation" token
and its content. `FastEncoder` gives the very ids of the `tokenizers` library several times faster, through a cache of
pre-tokens.

    python -m specd.mini.tokenizer --data DATA      # reads DATA/train.jsonl.xz, writes DATA/tokenizer.json
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

END_OF_TEXT, START, END, MASK = range(4)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")

# Pieces: newline and indentation; camel-case words; single digits; runs of _ and of `; one quote; punctuation with at
# most
# one space on either side; other blanks.
PATTERN = (
    r"\r?\n[ \t]*|\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|[\p{Lt}\p{Lm}\p{Lo}\p{M}]+|\p{N}|_+|`+|[\"']"
    r"| ?[^\s\p{L}\p{M}\p{N}_`\"']+ ?|[ \t]+|\s+"
)

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(texts: Iterable[str], vocabulary: int = 8192) -> Any:
    """Train a `tokenizers.Tokenizer` on texts."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=list(SPECIAL_TOKENS), show_progress=False, initial_alphabet=alphabet
        ),
    )
    return tokenizer


def tokenizer_config(max_length: int = 8192) -> dict[str, object]:
    """What tokenizer_config.json holds: a plain ChatML template, no system message added."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "mask_token": "<|mask|>",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


class FastEncoder:
    """Text to ids, as tokenizer.json does it; special tokens in the text are not recognised."""

    def __init__(self, path: str | Path):
        import regex  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        self._pieces = regex.compile(PATTERN).findall
        self._cache: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        ids: list[int] = []
        cache = self._cache
        for piece in self._pieces(text):
            known = cache.get(piece)
            if known is None:
                known = self._tokenizer.encode(piece, add_special_tokens=False).ids
                if len(cache) < 400_000:
                    cache[piece] = known
            ids += known
        return ids

    def words(self, text: str) -> list[int]:
        """The ids of those pieces of the text that hold a letter or a digit."""
        return [id_ for piece in self._pieces(text) if any(map(str.isalnum, piece)) for id_ in self(piece)]

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


def main() -> None:
    from specd.mini.corpus import read_files
    from specd.mini.inputs import need

    p = argparse.ArgumentParser(prog="python -m specd.mini.tokenizer", description=(__doc__ or "").split("\n")[0])
    p.add_argument("--data", type=Path, required=True, help="folder of specd.mini.corpus")
    p.add_argument("--vocabulary", type=int, default=8192)
    p.add_argument("--characters", type=float, default=3.0e6, help="text a language to learn from")
    args = p.parse_args()
    need(args.data / "train.jsonl.xz")
    rng = Random(1)
    files = read_files(args.data / "train.jsonl.xz")
    rng.shuffle(files)
    size: dict[str, float] = {}
    texts = []
    for f in files:
        if size.get(f.language, 0) < args.characters:
            size[f.language] = size.get(f.language, 0) + len(f.text)
            texts.append(f.text)
    build(texts, args.vocabulary).save(str(args.data / "tokenizer.json"))
    (args.data / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(), indent=1) + "\n")
    print(f"{len(texts)} files, {sum(size.values()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
