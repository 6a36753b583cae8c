"""Substitutions: where they apply, when they are given up, and what a divergence teaches."""

from pathlib import Path

import pytest
from following import train
from hypothesis import given
from hypothesis import strategies as st

from specd.engine.propose.edit_block import Rewriter
from specd.engine.propose.edit_guess import Guess
from specd.engine.propose.edit_learn import Seen, learn
from specd.engine.propose.edit_rules import Rule, RuleBook, as_pattern
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, quoted, to_bytes
from specd.engine.propose.edit_weights import FEATURES, WEIGHTS

TEXT = """def area(shape, scale):
    if shape is None:
        return 0
    return shape.width * shape.height * scale


def report(shapes, scale):
    for shape in shapes:
        print(area(shape, scale), other(shape), str(scale))
"""


class Case:
    """A text with its rules, as the cursor holds them."""

    def __init__(self, texts: TokenText, text: str = TEXT) -> None:
        self.source = Source(text, texts)
        self.rules = RuleBook(self.source)
        self.rewriter = Rewriter(self.source, self.rules, texts)

    def tokens(self, shift: int = 0) -> list[int]:
        found: list[int] = []
        unit = 0
        while unit < len(self.source.unit_starts):
            block = self.rewriter.block(unit, shift)
            found += block.tokens
            unit = block.units
        return found

    def rewritten(self, shift: int = 0) -> str:
        return self.rewriter.tokens.join(self.tokens(shift))

    def at(self, words: str) -> int:
        """The lexeme at which these words stand first."""
        return self.source.lexeme_at(self.source.text.index(words))

    def learn(self, old: str, new: str, *, seen: Seen | None = None, from_: int = 0) -> Rule | None:
        """As if the target had written `new` where `old` stands first behind byte `from_`."""
        offset = self.source.text.index(old, from_)
        first, last = self.source.lexeme_at(offset), self.source.lexeme_at(offset + len(old))
        return learn(self.rules, self.source, first, last, new, set() if seen is None else seen)


@pytest.fixture(scope="module", params=["behind", "before"])
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenText:
    folder: Path = tmp_path_factory.mktemp("bpe")
    return TokenText(train(folder, request.param))


def test_a_word_rule_changes_whole_words_only(texts: TokenText) -> None:
    case = Case(texts)
    case.rules.add(Rule(("shape",), "figure"))
    assert case.rewritten() == TEXT.replace("shape", "figure").replace("figures", "shapes")


def test_a_bound_rule_needs_the_lexeme_to_its_left(texts: TokenText) -> None:
    case = Case(texts)
    case.rules.add(Rule(("shape",), "figure", left="("))
    assert case.rewritten() == TEXT.replace("(shape", "(figure").replace("(figures", "(shapes")


def test_the_longest_pattern_wins(texts: TokenText) -> None:
    case = Case(texts)
    case.rules.add(Rule(("shape",), "figure"))
    case.rules.add(Rule(as_pattern("shape.width"), "width"))
    assert "return width * figure.height" in case.rewritten()


def test_a_place_that_was_kept_stays_and_a_rule_more_wrong_than_right_goes(texts: TokenText) -> None:
    case = Case(texts)
    rule = Rule(("scale",), "factor")
    case.rules.add(rule)
    for _ in range(3):
        case.rules.credit(rule)
    case.rules.keep(rule, case.at("scale"), wrong=True)
    assert case.rewritten() == TEXT.replace("scale", "factor").replace("factor", "scale", 1)
    case.rules.keep(rule, case.at("scale):"), wrong=True)
    assert case.rewritten() == TEXT


def test_a_rename_is_learnt_from_one_place(texts: TokenText) -> None:
    case = Case(texts)
    case.learn("shape", "figure")
    assert case.rewritten() == TEXT.replace("shape", "figure").replace("figures", "shapes")


def test_a_word_that_was_passed_unchanged_is_replaced_only_behind_the_same_lexeme(texts: TokenText) -> None:
    case = Case(texts)
    case.learn("scale", "factor", from_=TEXT.index("report"))
    assert "str(scale)" in TEXT
    assert case.rewritten() == TEXT.replace(" scale", " factor")


def test_the_second_time_it_holds_everywhere(texts: TokenText) -> None:
    case = Case(texts)
    seen: Seen = set()
    case.learn("scale", "factor", from_=TEXT.index("* scale"), seen=seen)
    case.learn("scale", "factor", from_=TEXT.index("report"), seen=seen)
    assert case.rewritten() == TEXT.replace("scale", "factor")


def test_an_insertion_is_learnt_by_the_word_before_it(texts: TokenText) -> None:
    case = Case(texts)
    case.learn("area(", "area(context, ")
    assert case.rewritten() == TEXT.replace("area(", "area(context, ")


def test_a_deletion_is_learnt_by_the_word_before_it_and_spares_other_places(texts: TokenText) -> None:
    case = Case(texts)
    case.learn("area(shape, ", "area(")
    assert case.rewritten() == TEXT.replace("area(shape, ", "area(")


def test_changes_over_several_lines_teach_nothing(texts: TokenText) -> None:
    case = Case(texts)
    assert case.learn("shape, scale):\n    if", "a):\n    b = 1\n    if") is None
    assert case.learn("shape", "shape") is None


def test_what_the_instruction_named_is_not_unlearnt_from_one_other_case(texts: TokenText) -> None:
    case = Case(texts)
    case.rules.add(Rule(("shape",), "figure", seeded=True))
    assert case.learn("shape", "thing") is None
    assert "area(figure" in case.rewritten()


def test_columns_stay_where_one_name_showed_that_they_do(texts: TokenText) -> None:
    case = Case(texts, "a_one     = 1\na_one     = 2\nlonger    = 3\n")
    case.rules.add(Rule(("a_one",), "a_single"))
    assert case.rewritten().startswith("a_single     = 1\n")
    at = case.source.starts[1]
    assert at == len("a_one")
    assert learn(case.rules, case.source, 1, 2, "  ", set()) is None
    assert case.rewritten() == "a_single  = 1\na_single  = 2\nlonger    = 3\n"


def test_a_shift_moves_every_line_that_is_not_blank(texts: TokenText) -> None:
    case = Case(texts)
    assert case.rewritten(4) == "".join("    " + line if line.strip() else line for line in TEXT.splitlines(True))
    assert case.rewritten(-4) == "".join(line.removeprefix("    ") for line in TEXT.splitlines(True))


WORDS = st.sampled_from(["shape", "scale", "area", "x1", "größe", "_", "None", "日本", "a"])
LINES = st.lists(
    st.lists(
        st.one_of(WORDS, st.sampled_from([" ", "  ", "(", "->", ", ", ".", "\t", "42", "🙂", "é"])), max_size=12
    ).map("".join),
    max_size=8,
).map(lambda lines: "\n".join(lines) + "\n")


@given(text=LINES, old=WORDS, new=WORDS)
def test_tokens_spliced_around_a_change_spell_the_changed_text(texts: TokenText, text: str, old: str, new: str) -> None:
    case = Case(texts, text)
    case.rules.add(Rule(as_pattern(to_bytes(old)), to_bytes(new)))
    pieces = case.rules.rewrite(0, len(case.source))
    assert texts.join(case.tokens()) == "".join(piece.text for piece in pieces)


@given(text=LINES, old=st.sampled_from(["shape", "scale", "area"]), new=st.sampled_from(["figure", "f", "LONG_name"]))
def test_tokens_spliced_around_a_renamed_word_are_the_tokenizers_own(
    texts: TokenText, text: str, old: str, new: str
) -> None:
    case = Case(texts, text)
    case.rules.add(Rule((old,), new))
    assert case.tokens() == texts.encode("".join(piece.text for piece in case.rules.rewrite(0, len(case.source))))


@given(
    text=st.tuples(LINES, LINES).map(lambda pair: "```\n" + pair[0] + "x = shape.area\n" * 20 + pair[1] + "```"),
    before=st.sampled_from(["", "a\n\n", "\n", "  "]),
    behind=st.sampled_from(["\n", "\n\n\nedit\n", "`", " "]),
)
def test_tokens_taken_from_the_prompt_are_the_tokenizers_own(
    texts: TokenText, text: str, before: str, behind: str
) -> None:
    spelled = to_bytes(text)
    known = texts.encode(to_bytes(before) + spelled + to_bytes(behind))
    assert quoted(spelled, known, texts) in ([], texts.encode(spelled))
    ours, own = Source(text, texts, known), Source(text, texts)
    assert (ours.tokens, ours.unit_starts) == (own.tokens, own.unit_starts)


def test_a_text_that_the_prompt_shows_is_not_tokenized_again(texts: TokenText) -> None:
    text = "```\n" + TEXT * 20 + "```"
    found = quoted(text, texts.encode(f"say\n{text}\nedit it\n"), texts)
    assert found == (texts.encode(text) if Source(text, texts).cut_behind else [])  # else a line's end is not a token's
    assert quoted(text, texts.encode("something else"), texts) == []


def test_every_kind_of_guess_has_a_weight_for_each_of_its_features() -> None:
    assert {kind: len(row.features) for kind, row in WEIGHTS.items()} == {
        kind: len(names) for kind, names in FEATURES.items()
    }


def test_a_guess_with_features_that_its_kind_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="match"):
        Guess("match", 0, (1.0,))
