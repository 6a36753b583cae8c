"""A rewrite from answer to outcome: what each kind of answer does to the file."""

import pytest

from specd.daemon.rewrite.hunks import apply_hunks
from specd.daemon.rewrite.prompt import Prompt, build_prompt, fenced
from specd.daemon.rewrite.region import Region, select_region
from specd.daemon.rewrite.stream import Outcome, RewriteStream

TEXT = (
    "import math\n"
    "\n"
    "\n"
    "class Circle:\n"
    "    def area(self):\n"
    "        return 3 * self.r * self.r\n"
    "\n"
    "    def name(self):\n"
    '        return "circle"\n'
    "\n"
    "\n"
    "def main():\n"
    "    print(Circle())\n"
)
WHOLE = select_region(TEXT)


def prompt_for(text: str, region: Region, instruction: str = "do it", form: str = "chat") -> Prompt:
    return build_prompt(
        "chat" if form == "chat" else "region",
        path="a.py",
        language="python",
        text=text,
        region=region,
        instruction=instruction,
    )


def rewrite(
    answer: str, *, text: str = TEXT, region: Region | None = None, instruction: str = "do it", complete: bool = True
) -> Outcome:
    """Feeds the answer one character at a time, and checks on the way that the hunks give the text of the outcome."""
    region = region or select_region(text)
    stream = RewriteStream(text, region, prompt_for(text, region, instruction))
    hunks = [hunk for character in answer for hunk in stream.push(character)]
    last, outcome = stream.finish(complete=complete)
    new = apply_hunks(text[region.start : region.end], hunks + last)
    assert outcome.text == text[: region.start] + new + text[region.end :]
    return outcome


def test_an_edit_is_done() -> None:
    new = TEXT.replace("3 *", "math.pi *")
    outcome = rewrite(f"Here you go:\n{fenced('python', new)}\nDone.")
    assert (outcome.kind, outcome.message, outcome.text) == ("done", "", new)


def test_an_indented_region_is_read_and_written_without_its_indentation() -> None:
    region = select_region(TEXT, at=5, language="python")
    outcome = rewrite("```python\ndef area(self):\n    return math.pi * self.r**2\n```", region=region)
    assert outcome.text == TEXT.replace("3 * self.r * self.r", "math.pi * self.r**2")


def test_a_region_can_be_put_into_a_block() -> None:
    region = select_region(TEXT, at=5, language="python")
    outcome = rewrite(
        "```python\nif round:\n    def area(self):\n        return 3 * self.r * self.r\n```", region=region
    )
    block = "    if round:\n        def area(self):\n            return 3 * self.r * self.r\n"
    assert outcome.text == TEXT[: region.start] + block + TEXT[region.end :]


def test_the_predicted_answer_changes_nothing() -> None:
    for region in (WHOLE, select_region(TEXT, at=5, language="python"), select_region(TEXT, lines=(1, 11))):
        for form in ("chat", "region"):
            prompt = prompt_for(TEXT, region, form=form)
            stream = RewriteStream(TEXT, region, prompt)
            assert stream.push(prompt.predicted) == []
            hunks, outcome = stream.finish(complete=True)
            assert hunks == []
            assert (outcome.kind, outcome.message, outcome.text) == ("unchanged", "the model changed nothing", TEXT)


def test_a_refusal_is_a_message() -> None:
    outcome = rewrite("I can't see a function of that name.")
    assert outcome.kind == "declined"
    assert outcome.message == "the model declined: I can't see a function of that name."
    assert outcome.text == TEXT
    assert not outcome.says_unchanged


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "the model answered no code: nothing changed"),
        (
            fenced("diff", "--- a/a.py\n+++ b/a.py\n@@ -4,3 +4,3 @@\n class Circle:\n-    x\n+    y\n"),
            "the model answered with a patch in place of the code: nothing changed; try it again",
        ),
    ],
)
def test_an_answer_that_is_neither_code_nor_words_says_that_nothing_changed(answer: str, message: str) -> None:
    outcome = rewrite(answer)
    assert (outcome.kind, outcome.message, outcome.text) == ("declined", message, TEXT)
    assert outcome.says_unchanged


def test_an_answer_cut_off_keeps_what_follows() -> None:
    new = TEXT.replace("3 *", "math.pi *").replace('"circle"', '"round"')
    answer = fenced("python", new)
    outcome = rewrite(answer[: answer.index("def main")], complete=False)
    assert outcome.kind == "truncated"
    assert outcome.text == TEXT.replace("3 *", "math.pi *")
    assert outcome.message == "the answer broke off; lines 9-13 are as before"


def test_a_model_that_ends_without_closing_its_fence_has_ended_if_it_wrote_all() -> None:
    new = TEXT.replace("3 *", "math.pi *")
    assert rewrite(f"```python\n{new}").kind == "done"
    without_last_end = rewrite(f"```python\n{new}".rstrip())
    assert (without_last_end.kind, without_last_end.text) == ("done", new)
    cut = rewrite(f"```python\n{new[: new.index('def main')]}")
    assert (cut.kind, cut.text) == ("truncated", new)


def test_lines_left_out_stay() -> None:
    head = TEXT[: TEXT.index("    def name")].replace("import math", "import cmath")
    outcome = rewrite(f"```python\n{head}    # ... rest of the class unchanged ...\n```")
    assert outcome.text == TEXT.replace("import math", "import cmath")
    assert outcome.kind == "done"
    assert outcome.report.omissions == ["# ... rest of the class unchanged ..."]


def test_lines_left_out_in_the_middle_stay() -> None:
    answer = (
        "```python\nimport cmath\n\n\nclass Circle:\n    # ... existing methods ...\n\n\ndef main():\n    run()\n```"
    )
    outcome = rewrite(answer)
    assert outcome.text == TEXT.replace("import math", "import cmath").replace("print(Circle())", "run()")


def test_where_it_cannot_be_told_what_was_left_out_the_rest_stays_and_it_is_said() -> None:
    answer = "```python\nimport cmath\n\n\nclass Circle:\n    def area(self, scale):\n        # ... unchanged ...\n```"
    outcome = rewrite(answer)
    assert outcome.kind == "declined"
    assert outcome.text == TEXT.replace("import math", "import cmath")
    assert outcome.message == (
        'the model left lines out ("# ... unchanged ...") and it cannot be told which; lines 5-13 are as before'
    )


def test_nothing_outside_the_region_changes() -> None:
    region = select_region(TEXT, lines=(4, 6))
    outcome = rewrite("```python\nx = 1\n```", region=region)
    assert outcome.text == TEXT.replace(TEXT[region.start : region.end], "    x = 1\n")


def test_deleting_everything_is_an_edit_if_the_fence_says_so() -> None:
    region = select_region(TEXT, lines=(4, 7))
    for answer in ("```python\n```", "```python\n\n```"):
        outcome = rewrite(answer, region=region, instruction="delete it")
        assert outcome.kind == "done"
        assert outcome.text == TEXT[: region.start] + "\n" + TEXT[region.end :], "its blank last line stays"


def test_deleting_everything_takes_the_blank_lines_if_the_instruction_speaks_of_them() -> None:
    region = select_region(TEXT, lines=(4, 7))
    outcome = rewrite("```python\n\n```", region=region, instruction="delete it and the blank line below")
    assert outcome.text == TEXT[: region.start] + TEXT[region.end :]


def test_blank_lines_at_both_ends_of_a_region_stay() -> None:
    region = select_region(TEXT, lines=(9, 13))
    outcome = rewrite("```python\ndef main():\n    run()\n```", region=region)
    assert outcome.text == TEXT.replace("print(Circle())", "run()")


def test_blanks_count_where_the_instruction_speaks_of_them() -> None:
    text = "a = 1  \nb = 2\n\n\n"
    answer = "```python\na = 1\nb = 2\n```"
    assert rewrite(answer, text=text).kind == "unchanged"
    outcome = rewrite(answer, text=text, instruction="remove trailing whitespace and blank lines at the end")
    assert (outcome.kind, outcome.text) == ("done", "a = 1\nb = 2\n")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_stay_what_they_are(end: str) -> None:
    text = TEXT.replace("\n", end)
    answer = fenced("python", TEXT.replace("3 *", "math.pi *").replace("import math\n", "import math\nimport os\n"))
    assert rewrite(answer, text=text).text == text.replace("3 *", "math.pi *").replace(
        f"import math{end}", f"import math{end}import os{end}"
    )


def test_mixed_line_ends_stay_line_by_line() -> None:
    text = "a = 1\r\nb = 2\nc = 3\rd = 4\r\n"
    assert rewrite("```\na = 1\nb = 20\nc = 30\nd = 4\n```", text=text).text == "a = 1\r\nb = 20\nc = 30\rd = 4\r\n"


def test_a_last_line_without_an_end_stays_without() -> None:
    assert rewrite("```\na = 1\nb = 3\n```", text="a = 1\nb = 2").text == "a = 1\nb = 3"
    assert rewrite("```\na = 1\nb = 2\nc = 3\n```", text="a = 1\nb = 2").text == "a = 1\nb = 2\nc = 3"
    assert rewrite("```\na = 1\n```", text="a = 1\nb = 2").text == "a = 1"


def test_one_line_of_a_file_with_crlf_grows_with_crlf() -> None:
    text = "a = 1\r\nb = 2"
    region = select_region(text, lines=(1, 2))
    assert rewrite("```\nb = 2\nc = 3\n```", text=text, region=region).text == "a = 1\r\nb = 2\r\nc = 3"


def test_a_recipe_added_to_a_makefile_keeps_its_tab() -> None:
    text = "SOURCES = a.c \\\n  b.c\n"
    answer = f"```makefile\n{text}all:\n\tcc $(SOURCES)\n```"
    region = select_region(text)
    stream = RewriteStream(text, region, prompt_for(text, region), language="makefile")
    stream.push(answer)
    assert stream.finish(complete=True)[1].text == text + "all:\n\tcc $(SOURCES)\n"


def test_a_byte_order_mark_stays_first() -> None:
    text = "\ufeffa = 1\r\nb = 2\r\n"
    assert rewrite("```\nx = 0\na = 1\nb = 2\n```", text=text).text == "\ufeffx = 0\r\na = 1\r\nb = 2\r\n"
    assert rewrite("```\nb = 2\n```", text=text).text == "\ufeffb = 2\r\n"


def test_a_byte_order_mark_of_the_models_is_none_of_the_files() -> None:
    for mark in ("\ufeff", ""):
        assert rewrite("```\n\ufeffa = 2\n```", text=f"{mark}a = 1\n").text == f"{mark}a = 2\n"


def test_an_empty_file_can_be_filled() -> None:
    assert rewrite("```python\nx = 1\n```", text="").text == "x = 1\n"
    assert rewrite("```python\n\n```", text="").kind == "unchanged"


def over_after(answer: str, *, text: str = TEXT, language: str | None = "python") -> str | None:
    """What was read of the answer when it was known to be over; None if it never was."""
    region = select_region(text)
    stream = RewriteStream(text, region, prompt_for(text, region), language=language)
    for at, character in enumerate(answer):
        stream.push(character)
        if stream.is_over:
            assert stream.finish(complete=True)[1].kind == "done"
            return answer[: at + 1]
    return None


def test_an_answer_is_over_when_its_fence_is_closed() -> None:
    answer = fenced("python", TEXT.replace("3 *", "math.pi *")) + "\n"
    assert over_after(answer + "I replaced the number by pi.\n" * 99) == answer


def test_a_region_in_a_class_is_over_too() -> None:
    region = select_region(TEXT, at=5, language="python")
    stream = RewriteStream(TEXT, region, prompt_for(TEXT, region), language="python")
    stream.push("```python\ndef area(self):\n    return math.pi * self.r**2\n```\n")
    assert stream.is_over


@pytest.mark.parametrize(
    ("text", "language", "answer"),
    [
        ("# Title\n\ntext\n", "markdown", "```\n# Title\n\ntext\n\n```\nmake\n```\nmore\n```\n"),
        ("x = 1\n", "python", '```\nx = 1\n"""\n```\nmake\n```\n"""\n```\n'),
        ("int x;\n", "c", "```\nint x;\n/* so:\n```\nmake\n```\n*/\n```\n"),
        ("text\n", "haskell", "```\ntext\n```\nmore\n```\n"),
    ],
)
def test_an_answer_is_not_over_at_a_fence_that_may_be_the_users_text(text: str, language: str, answer: str) -> None:
    over = over_after(answer, text=text, language=language)
    assert over in (None, answer)


def test_an_example_of_something_else_is_not_taken_for_the_answer() -> None:
    assert over_after("Like this:\n```python\nprint(1)\n```\nSorry, I cannot see the rest.") is None
