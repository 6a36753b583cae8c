from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from specd.daemon.rewrite.prompt import region_answer, region_message
from specd.mini.edits import Edit, EditMaker, SourceFile
from specd.mini.packing import (
    AMBIGUOUS,
    FIRST,
    IGNORE,
    NAMED,
    UNSEEN,
    Packer,
    encode_edit,
    loss_weights,
    packs,
    spoken_of,
)
from specd.mini.tokenizer import END, START, FastEncoder

EDIT = Edit("rename", "python", "def f(x):\n    return x", "rename f to g", "def g(x):\n    return x", "own")


def test_fast_encoding_equals_the_tokenizers_library(data: Path, files: list[SourceFile]) -> None:
    fast, slow = FastEncoder(data / "tokenizer.json"), Tokenizer.from_file(str(data / "tokenizer.json"))
    for f in files:
        ids = fast(f.text)
        assert ids == slow.encode(f.text, add_special_tokens=False).ids
        assert slow.decode(ids) == f.text


def test_an_identifier_has_the_same_tokens_wherever_it_stands(data: Path) -> None:
    encode = FastEncoder(data / "tokenizer.json")
    name = encode("GridSize")
    for before, after in ((" ", " "), ("(", ")"), (".", "["), ("\n    ", ":"), ('"', '"'), ("!", ";")):
        ids, n = encode(f"a{before}GridSize{after}b"), len(name)
        assert any(ids[i : i + n] == name for i in range(len(ids))), (before, after)


def test_a_document_is_the_prompt_that_serving_sends(data: Path) -> None:
    encode = FastEncoder(data / "tokenizer.json")
    prompt, answer = encode_edit(EDIT, encode, "python")
    text = encode.decode(prompt + answer)
    asked, answered = region_message("python", EDIT.before, EDIT.instruction), region_answer("python", EDIT.after)
    assert text == f"<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n{answered}<|im_end|>"
    assert prompt[0] == START
    assert answer[-1] == END


def test_loss_weighs_what_copying_does_not_settle() -> None:
    prompt = [1, 10, 11, 12, 20, 30, 10, 11, 12, 21, 2]
    answer = [10, 11, 12, 20, 99]
    weights = loss_weights(prompt, answer).tolist()
    assert weights[3] == AMBIGUOUS, "10 11 12 led to 20 and to 21"
    assert weights[4] == UNSEEN, "nothing in the prompt leads to 99"
    assert loss_weights([5, 6, 7, 8, 9, 6, 7, 8], [9])[0] == 1.0, "6 7 8 led to 9 only"
    assert loss_weights([5, 6, 7, 8, 9, 6, 7, 8], [9], [9])[0] == NAMED, "the instruction speaks of 9"
    assert loss_weights([5, 6, 7, 8, 9, 6, 7, 8], [9], [9], [9])[0] == FIRST, "a name begins with 9"


def test_where_a_name_may_begin_counts_most(data: Path) -> None:
    encode = FastEncoder(data / "tokenizer.json")
    edit = Edit("rename", "python", "x = size_a + size", "rename size to n", "x = size_a + n", "own", ("size", "n"))
    prompt, answer = encode_edit(edit, encode, "")
    weights = loss_weights(prompt, answer, *spoken_of(edit, encode))
    begins = [i for i, id_ in enumerate(answer) if id_ in (encode("size")[0], encode("n")[0])]
    assert len(begins) == 2, "the look-alike that stays and the name that changes"
    assert all(weights[i] == FIRST for i in begins)
    assert (weights < FIRST).sum() == len(answer) - 2


def test_an_instructions_words_are_its_names(data: Path) -> None:
    encode = FastEncoder(data / "tokenizer.json")
    words = encode.words("rename `total` to x2, please!")
    assert set(encode("total") + encode("x")) <= set(words)
    assert not set(encode("`") + encode("!")) & set(words)


def test_rows_of_a_pack_point_one_before_their_labels(data: Path, files: list[SourceFile], pool: list[str]) -> None:
    encode = FastEncoder(data / "tokenizer.json")
    pack = next(packs(EditMaker(files, pool, 5), encode, 4096, 1500, lambda: ((1.0, 400),)))
    used = pack.labels != IGNORE
    assert used.sum() > 500
    assert (pack.tokens[pack.rows[used] + 1] == pack.labels[used]).all()
    starts = pack.bounds[pack.bounds < len(pack.tokens)]
    assert (pack.positions[starts] == 0).all()
    assert (pack.tokens[starts][:-1] == START).all()


def test_a_pack_takes_no_document_that_does_not_fit() -> None:
    packer = Packer(1024)
    assert packer.fits([1] * 500, [2] * 500)
    packer.add([1] * 500, [2] * 500)
    assert not packer.fits([1] * 20, [2] * 20)
    assert np.count_nonzero(packer.pack().labels != IGNORE) == 500
