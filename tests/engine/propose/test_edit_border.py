"""Borders: what stands between two of them has the tokens there that it has alone."""

from pathlib import Path

import pytest
from following import train
from hypothesis import given
from hypothesis import strategies as st

from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText

WORDS = st.sampled_from(["self", "x", "value_of", "Title", "HTTP2", "é", "naïve", "_", "42", "🙂"])
MARKS = st.sampled_from([" ", "  ", "    ", "\t", "\n", "\n\n    ", "(", ")", ", ", " = ", ".", "'", "...", "\r\n"])
TEXTS = st.lists(st.tuples(WORDS, MARKS), min_size=1, max_size=30).map(lambda pairs: "".join(w + m for w, m in pairs))


@pytest.fixture(scope="module", params=["behind", "before"])
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenText:
    folder: Path = tmp_path_factory.mktemp("bpe")
    return TokenText(train(folder, request.param))


def source_of(texts: TokenText) -> Source:
    return Source("def area(self, x):\n    if self is None:\n        return 0\n    return self.x * x\n" * 5, texts)


@given(text=TEXTS)
def test_the_tokens_of_a_text_are_those_of_its_segments(texts: TokenText, text: str) -> None:
    spelled = text.encode().decode("latin-1")
    parts = source_of(texts).borders.split(spelled)
    assert "".join(parts) == spelled
    assert [token for part in parts for token in texts.encode(part)] == texts.encode(spelled)


@given(text=TEXTS)
def test_segments_of_the_source_have_the_tokens_that_they_have_alone(texts: TokenText, text: str) -> None:
    source = Source(text, texts)
    for segment, (first, last) in source.borders.segments.items():
        assert source.tokens[first:last].tolist() == texts.encode(segment)


@given(text=TEXTS, before=WORDS | MARKS, cut=st.integers(0, 100))
def test_behind_a_change_the_source_is_taken_up_where_its_tokens_begin(
    texts: TokenText, text: str, before: str, cut: int
) -> None:
    source = Source(text, texts)
    begin = len(text[:cut].encode())
    lead = before.encode().decode("latin-1")
    place = source.borders.first(begin, lead)
    own = source.tokens[source.token_at[place] :].tolist()
    changed = texts.encode(lead + source.text[begin:place])
    assert changed + own == texts.encode(lead + source.text[begin:])


@given(text=TEXTS, behind=WORDS | MARKS, cut=st.integers(0, 100))
def test_before_a_change_the_source_is_left_where_a_token_ends(
    texts: TokenText, text: str, behind: str, cut: int
) -> None:
    source = Source(text, texts)
    end = len(text[:cut].encode())
    lead = behind.encode().decode("latin-1")
    place = source.borders.last(end, lead)
    own = source.tokens[: source.token_at[place]].tolist()
    changed = texts.encode(source.text[place:end] + lead)
    assert own + changed == texts.encode(source.text[:end] + lead)
