"""Answers that are not the code: a patch, a refusal in a fence, an emptied file, a zero byte, a broken character."""

import pytest

from specd.daemon.rewrite.hunks import apply_hunks
from specd.daemon.rewrite.instead import is_patch, is_refusal, is_sentence
from specd.daemon.rewrite.prompt import build_prompt
from specd.daemon.rewrite.region import select_region
from specd.daemon.rewrite.stream import Outcome, RewriteStream

TEXT = "import os\n\n\nclass Grid:\n    pass\n\n\ndef make():\n    return Grid()\n"
PATCH = (
    "--- a/grid.py\n+++ b/grid.py\n@@ -1,5 +1,5 @@\n import os\n \n \n-class Grid:\n+class Mesh:\n     pass\n"
    "@@ -8,2 +8,2 @@\n def make():\n-    return Grid()\n+    return Mesh()\n"
)


def rewrite(
    answer: str, text: str = TEXT, *, lines: tuple[int, int] | None = None, language: str = "python"
) -> Outcome:
    """Feeds the answer one character at a time, and checks on the way that the hunks give the text of the outcome."""
    region = select_region(text, lines=lines)
    prompt = build_prompt("chat", path="a", language=language, text=text, region=region, instruction="do it")
    stream = RewriteStream(text, region, prompt, language=language)
    hunks = [hunk for character in answer for hunk in stream.push(character)]
    last, outcome = stream.finish(complete=True)
    assert (
        outcome.text
        == text[: region.start] + apply_hunks(text[region.start : region.end], hunks + last) + (text[region.end :])
    )
    return outcome


@pytest.mark.parametrize(
    "answer",
    [
        f"```diff\n{PATCH}```",
        f"```\n{PATCH}```",
        f"```python\ndiff --git a/grid.py b/grid.py\n{PATCH}```\nThat is it.",
        f"```python\n{PATCH[PATCH.index('@@') :]}```",
        f"```diff\n{PATCH[PATCH.index(' import') :]}```",
    ],
)
def test_a_patch_is_no_code(answer: str) -> None:
    outcome = rewrite(answer)
    assert (outcome.kind, outcome.text) == ("declined", TEXT)
    assert "a patch" in outcome.message


def test_a_patch_file_may_be_rewritten() -> None:
    answer = f"```\n{PATCH.replace('a/grid.py', 'a/mesh.py')}```"
    assert rewrite(answer, PATCH, language="").text == PATCH.replace("a/grid.py", "a/mesh.py")


def test_a_doc_comment_that_looks_like_the_beginning_of_a_patch_is_code() -> None:
    lua = "local M = {}\nfunction M.area(r)\n  return r\nend\nreturn M\n"
    for doc in ("--- Circles.\n", "--- Circles.\n\n", "--- Circles.\n--- And more.\n"):
        assert rewrite(f"```lua\n{doc}{lua}```", lua, language="lua").text == doc + lua
    assert rewrite("```lua\n--- gone\n```", lua, lines=(0, 1), language="lua").text == lua.replace(
        "local M = {}", "--- gone"
    )


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, I can't do that.",
        "# Sorry, but this cannot be done without the other file.",
        "// I am unable to see\n// the function you name.",
        "Could you tell me which of the two you mean?",
    ],
)
def test_a_refusal_in_a_fence_is_a_message(said: str) -> None:
    outcome = rewrite(f"```python\n{said}\n```")
    assert (outcome.kind, outcome.text) == ("declined", TEXT)
    assert outcome.message.startswith("the model declined: ")
    assert said.split()[-1] in outcome.message


def test_a_sentence_of_a_short_region_may_say_that_something_cannot_be() -> None:
    text = "# This works.\nx = 1\n"
    new = rewrite("```python\n# Sorry, this cannot work yet.\n```", text, lines=(0, 1))
    assert (new.kind, new.text) == ("done", "# Sorry, this cannot work yet.\nx = 1\n")


def test_code_that_raises_what_it_cannot_do_is_code() -> None:
    code = 'def make():\n    raise ValueError("sorry, cannot do it.")'
    assert rewrite(f"```python\n{code}\n```").text == code + "\n"


@pytest.mark.parametrize("answer", ["```python\n```", "```python\n\n\n```\n", "Removed:\n```\n```"])
def test_an_empty_block_never_empties_a_file(answer: str) -> None:
    outcome = rewrite(answer)
    assert (outcome.kind, outcome.text) == ("declined", TEXT)


def test_an_empty_block_removes_the_lines_that_were_selected() -> None:
    outcome = rewrite("```python\n```", lines=(3, 5))
    assert (outcome.kind, outcome.text) == ("done", TEXT.replace("class Grid:\n    pass\n", ""))


def test_a_zero_byte_ends_what_is_applied() -> None:
    outcome = rewrite("```python\n" + TEXT.replace("os", "re").replace("return", "ret\0urn") + "```")
    assert outcome.kind == "declined"
    assert outcome.message == "the model wrote a zero byte, which no text has; line 9 is as before"
    assert outcome.text == TEXT.replace("os", "re")


def test_a_broken_character_ends_what_is_applied_unless_the_text_has_one() -> None:
    outcome = rewrite("```python\n" + TEXT.replace("os", "re").replace("return", "ret\ufffdurn") + "```")
    assert outcome.kind == "declined"
    assert outcome.message == "the model wrote a broken character; line 9 is as before"
    assert outcome.text == TEXT.replace("os", "re")
    has_one = TEXT.replace("return", "return '\ufffd' or")
    assert rewrite("```python\n" + has_one.replace("Grid", "Mesh") + "```", has_one).kind == "done"


def test_a_closing_fence_right_behind_the_code_closes_it() -> None:
    new = TEXT.replace("Grid", "Mesh")
    outcome = rewrite(f"```python\n{new.removesuffix(chr(10))}```")
    assert (outcome.kind, outcome.text) == ("done", new)
    ticks = "x = `a```\ny = 1\n"
    assert rewrite("```js\nx = `b```\ny = `c```", ticks, language="javascript").kind == "truncated"


def test_what_was_said_before_code_without_a_fence_is_no_code() -> None:
    new = TEXT.replace("Grid", "Mesh")
    for said in ("Sure! Here is it:\n\n", "Certainly, here you go:\n", "Done.\n\n"):
        assert rewrite(said + new).text == new


def test_the_forms_are_told_apart() -> None:
    assert is_patch("--- a", None, tag="") is None
    assert is_patch("--- a", "+++ b", tag="") is True
    assert is_patch("x = 1", None, tag="diff") is False
    assert is_sentence(["Sure! Here", "is it:"])
    assert not is_sentence(["x = f(1):"])
    assert not is_refusal(["Here it is."])
