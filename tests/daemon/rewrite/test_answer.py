"""What the answer filter drops, what it lets through, and what it calls no code at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.daemon.rewrite.answer import AnswerFilter, AnswerReport

ORIGINAL = "def area(r):\n    return 3 * r * r\n\n\ndef main():\n    print(area(2))\n"
EDITED = ORIGINAL.replace("3 *", "3.14 *")


def read(
    answer: str, original: str = ORIGINAL, size: int = 0, language: str | None = "python"
) -> tuple[str, AnswerReport]:
    answers = AnswerFilter(original, tag="python", language=language)
    step = size or len(answer) or 1
    code = "".join([answers.push(answer[at : at + step]) for at in range(0, len(answer), step)])
    return code + answers.finish(), answers.report


def test_code_in_a_fence_comes_through_as_it_is() -> None:
    code, report = read(f"```python\n{EDITED}```")
    assert code == EDITED
    assert report == AnswerReport(fence=True, closed=True)


@pytest.mark.parametrize("opening", ["```", "``` python", "```py title=x", "~~~~julia", "  ```python"])
def test_any_fence_will_do(opening: str) -> None:
    marks = opening.strip().rstrip("abcdefghijklmnopqrstuvwxyz =")
    code, report = read(f"{opening}\n{EDITED}{marks}\n")
    assert (code, report.fence, report.closed) == (EDITED, True, True)


def test_whole_lines_leave_at_once() -> None:
    answers = AnswerFilter(ORIGINAL)
    assert answers.push("```python\ndef area") == ""
    assert answers.push("(r):\n    ret") == "def area(r):\n"


def test_a_leading_think_block_is_dropped_with_the_fences_in_it() -> None:
    code, report = read(f"\n<think>\nLet me see.\n```python\nwrong\n```\n</think>\n\n```python\n{EDITED}```")
    assert code == EDITED
    assert report.think
    assert report.prose == ""


def test_a_think_block_on_one_line_with_the_fence_is_dropped() -> None:
    assert read(f"<think></think>```python\n{EDITED}```")[0] == EDITED


def test_think_tags_and_fences_of_the_users_own_text_survive() -> None:
    text = "<think>\nnot a thought\n</think>\n```julia\nx\n```\n"
    code, report = read(f"````markdown\n{text}````\n", original=text)
    assert (code, report.think, report.closed) == (text, False, True)


def test_a_raw_answer_that_begins_with_the_users_own_think_tag_survives() -> None:
    text = "<think>\nnot a thought\nat all\n</think>\nand a last line\n"
    assert read(text, original=text)[0] == text


def test_a_think_tag_behind_prose_begins_no_think_block() -> None:
    code, report = read(f"The tag is\n<think>\n```python\n{EDITED}```")
    assert (code, report.think) == (EDITED, False)


def test_only_a_fence_of_the_same_kind_and_length_ends_the_code() -> None:
    for text, fence in (("a\n```\nb\n", "````"), ("a\n~~~~\nb\n", "```"), ("a\n```\nb\n", "~~~")):
        code, report = read(f"{fence}markdown\n{text}{fence}\n", original=text)
        assert (code, report.closed) == (text, True)


def test_prose_before_and_after_is_dropped_and_reported() -> None:
    code, report = read(f"Sure! Here it is:\n\n```python\n{EDITED}```\n\nI changed the constant.")
    assert code == EDITED
    assert report.prose == "Sure! Here it is:\n\n\nI changed the constant."
    assert report.preface == "Sure! Here it is:"


def test_a_doc_comment_with_an_example_in_a_fence_stays_whole() -> None:
    text = '"""\n    area(r)\n\n```jldoctest\njulia> area(2)\n```\n"""\narea(r) = 3r^2\n'
    code, report = read(f"```julia\n{text}```\n", original="area(r) = 3r^2\n")
    assert (code, report.closed) == (text, True)


def test_a_fence_indented_deeper_than_the_outer_one_is_text() -> None:
    text = "def f():\n  '''\n  ```\n  f()\n  ```\n  '''\n"
    assert read(f"```python\n{text}```", original=text)[0] == text


def test_a_second_block_is_prose() -> None:
    code, report = read(f"```python\n{EDITED}```\nUse it like this:\n```python\nmain()\n```\n")
    assert code == EDITED
    assert report.closed
    assert "main()" in report.prose


def test_the_end_of_the_code_is_not_sure_where_a_bare_fence_follows() -> None:
    _, report = read("```python\ndef f():\n```\nexample\n```\n    pass\n```\n")
    assert not report.closed


def test_an_answer_that_broke_off_is_not_closed() -> None:
    code, report = read("```python\ndef area(r):\n    return 3.1")
    assert code == "def area(r):\n    return 3.1"
    assert not report.closed


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't do that.",
        "Which of the two functions do you mean?",
        "The function `area` computes the area of a circle.\nIt multiplies the radius by itself.",
        "",
        "\n\n",
        "<think>\nI should not",
    ],
)
def test_an_answer_without_code_is_a_message(answer: str) -> None:
    code, report = read(answer)
    assert code == ""
    assert report.declined == ("" if "<think>" in answer else answer.strip())


def test_a_refusal_with_an_example_of_something_else_is_a_message() -> None:
    code, report = read("I cannot rewrite that, but you could do this:\n```python\nimport os\nos.abort()\n```\n")
    assert report.declined is not None
    assert report.declined.startswith("I cannot rewrite that")
    assert code == "import os\nos.abort()\n"


def test_code_without_a_fence_comes_at_the_end_if_it_is_the_originals() -> None:
    answers = AnswerFilter(ORIGINAL)
    assert answers.push(EDITED) == ""
    assert answers.finish() == EDITED
    assert answers.report == AnswerReport(closed=True)


def test_sentences_around_code_without_a_fence_are_dropped() -> None:
    code, report = read(f"Here is the function you asked for:\n\n{EDITED}\nI have changed the constant.")
    assert code == EDITED
    assert report.prose.split("\n\n") == ["Here is the function you asked for:", "\nI have changed the constant."]


def test_a_short_region_may_be_rewritten_without_a_fence() -> None:
    assert read("timeout = 30\n", original="timeout = 10\n")[0] == "timeout = 30\n"
    assert read("What should it be?", original="timeout = 10\n")[1].declined == "What should it be?"


def test_omission_lines_are_reported_unless_the_original_has_them() -> None:
    answer = "```python\ndef area(r):\n    # ... rest unchanged\n```\n"
    assert read(answer)[1].omissions == ["# ... rest unchanged"]
    assert read(answer, original="  # ... rest unchanged\n")[1].omissions == []


def test_line_ends_of_the_answer_do_not_matter() -> None:
    for end in ("\r\n", "\r"):
        assert read(f"```python\n{EDITED}```\n".replace("\n", end), size=1)[0] == EDITED


fragment = st.one_of(
    st.sampled_from(
        ["```", "```python\n", "````\n", "~~~\n", "\n", "\r\n", "\r", "<think>", "</think>", "# ...\n", "Sure:\n", " "]
    ),
    st.sampled_from(ORIGINAL.split("\n")).map("{}\n".format),
    st.text(max_size=8),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(fragment, max_size=20).map("".join), st.sampled_from([ORIGINAL, "", "```\nx\n```\n", "<think>\n"]))
def test_the_result_does_not_depend_on_how_the_answer_was_cut(answer: str, original: str) -> None:
    whole = read(answer, original)
    assert whole == read(answer, original, size=1) == read(answer, original, size=3) == read(answer, original, size=7)
