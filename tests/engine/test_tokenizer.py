"""Text to tokens and back, and text out of a stream that never tears a character."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.engine import ModelError, TextStream, Tokenizer

TEXTS = ["", "plain", "naïve café", "日本語", "👩‍👩‍👧 family", "a\r\nb\tc\x0c", "e\u0301 \u202e rtl", "\u2028", "\x00"]


@pytest.fixture(scope="module")
def tiny(tiny_folder: Callable[..., Path]) -> Tokenizer:
    return Tokenizer(tiny_folder(0))


@pytest.fixture(scope="module")
def qwen(qwen_tokenizer_folder: Path) -> Tokenizer:
    return Tokenizer(qwen_tokenizer_folder)


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back(tiny: Tokenizer, text: str) -> None:
    assert tiny.decode(tiny.encode(text)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_through_qwens_tokenizer(qwen: Tokenizer, text: str) -> None:
    ids = qwen.encode(text)
    composed = unicodedata.normalize("NFC", text)  # Qwen's tokenizer composes before it splits
    assert qwen.decode(ids) == composed
    assert b"".join(map(qwen.token_bytes, ids)) == composed.encode()


@settings(deadline=None)
@given(st.lists(st.integers(0, 271), max_size=60), st.data())
def test_stream_deltas_concatenate_to_the_decode(ids: list[int], data: st.DataObject) -> None:
    tokenizer = test_stream_deltas_concatenate_to_the_decode.tokenizer  # type: ignore[attr-defined]
    stream, out, rest = TextStream(tokenizer), "", list(ids)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        delta = stream.push(rest[:size])
        delta.encode("utf-8")  # whole characters only
        out, rest = out + delta, rest[size:]
    assert out + stream.finish() == tokenizer.decode(ids)


@pytest.fixture(autouse=True)
def _tokenizer(tiny: Tokenizer) -> None:
    test_stream_deltas_concatenate_to_the_decode.tokenizer = tiny  # type: ignore[attr-defined]


def test_half_a_character_waits(tiny: Tokenizer) -> None:
    first, second = tiny.encode("é")
    stream = TextStream(tiny)
    assert [stream.push([first]), stream.push([second]), stream.finish()] == ["", "é", ""]
    assert [stream.push([first]), stream.finish()] == ["", "\ufffd"]


def test_special_tokens_are_read_but_have_no_text(tiny: Tokenizer) -> None:
    assert tiny.encode("a<|im_end|>b") == [*tiny.encode("a"), 258, *tiny.encode("b")]
    assert tiny.decode([*tiny.encode("a"), 258]) == "a"
    assert tiny.token_id("<|im_end|>") == 258
    assert tiny.token_id("<|nothing|>") is None
    assert tiny.vocab_size == 260


def test_chat_ends_where_the_answer_begins(tiny: Tokenizer) -> None:
    messages = [{"role": "user", "content": "do it"}]
    assert tiny.chat_text(messages) == "<|im_start|>user\ndo it<|im_end|>\n<|im_start|>assistant\n"
    assert tiny.chat(messages, answer_prefix="```") == tiny.encode(tiny.chat_text(messages) + "```")


def test_special_tokens_in_a_message_are_text(tiny: Tokenizer) -> None:
    messages = [{"role": "user", "content": "a<|im_end|>b"}, {"role": "user", "content": "plain"}]
    ids = tiny.chat(messages, answer_prefix="```")
    assert ids.count(258) == 2  # the template's own
    assert tiny.decode(ids) == "user\na<|im_end|>b\nuser\nplain\nassistant\n```"
    assert tiny.encode("<|im_end|>") == [258]  # and the tokenizer reads them again


def test_qwen_chat_has_thinking_off(qwen: Tokenizer) -> None:
    text = qwen.chat_text([{"role": "user", "content": "do it"}])
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert (qwen.vocab_size, qwen.token_id("<|im_end|>")) == (151669, 151645)


CONVERSATIONS = [
    [{"role": "user", "content": "do it"}],
    [{"role": "system", "content": "You rewrite code."}, {"role": "user", "content": "  blanks kept \n\n"}],
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>\nx\n</think>\n\nb"},
        {"role": "user", "content": "c"},
    ],
]


@pytest.mark.parametrize("messages", CONVERSATIONS)
def test_qwens_template_renders_as_in_transformers(qwen: Tokenizer, messages: list[dict[str, str]]) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(qwen.folder), local_files_only=True)
    expected = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    assert qwen.chat_text(messages) == expected


def test_a_template_may_stand_in_a_file_of_its_own_and_may_refuse(tiny_folder: Callable[..., Path]) -> None:
    folder = tiny_folder(2)
    (folder / "chat_template.jinja").write_text("{%- for m in messages %}[{{ m.content }}]{%- endfor %}")
    assert Tokenizer(folder).chat_text([{"role": "user", "content": "x"}]) == "[x]"
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no system message, please') }}")
    with pytest.raises(ModelError, match="no system message, please"):
        Tokenizer(folder).chat_text([{"role": "system", "content": "x"}])
    (folder / "chat_template.jinja").write_text("{% for %}")
    with pytest.raises(ModelError, match="template is broken"):
        Tokenizer(folder).chat_text([{"role": "user", "content": "x"}])
    (folder / "chat_template.jinja").write_text("{{ messages.__class__.__mro__ }}")
    with pytest.raises(ModelError, match="refuses"):
        Tokenizer(folder).chat_text([{"role": "user", "content": "x"}])


def test_a_base_model_without_a_template_is_refused(tiny_folder: Callable[..., Path]) -> None:
    folder = tiny_folder(1)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(ModelError, match="no chat template"):
        Tokenizer(folder).chat([{"role": "user", "content": "x"}])
