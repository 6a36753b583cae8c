"""What the model is asked, in both forms."""

import pytest

from specd.daemon.rewrite.lines import normalise
from specd.daemon.rewrite.prompt import (
    SYSTEM,
    Prompt,
    PromptForm,
    PromptTooLong,
    build_prompt,
    fence_for,
    region_answer,
    region_message,
)
from specd.daemon.rewrite.region import select_region

TEXT = "".join(f"def f{at}(x):\n    return x + {at}\n\n\n" for at in range(100)).rstrip("\n") + "\n"


def build(
    form: PromptForm,
    text: str = TEXT,
    lines: tuple[int, int] | None = (200, 202),
    instruction: str = "rename f50 to g",
    budget: int | None = None,
    path: str | None = "a.py",
) -> Prompt:
    region = select_region(text, lines=lines)
    return build_prompt(
        form, path=path, language="python", text=text, region=region, instruction=instruction, budget=budget, count=len
    )


def test_the_region_form_is_the_one_the_bundled_model_learned() -> None:
    prompt = build("region")
    content = "```python\ndef f50(x):\n    return x + 50\n```\nrename f50 to g"
    assert prompt.messages == [{"role": "user", "content": content}]
    assert prompt.predicted == "```python\ndef f50(x):\n    return x + 50\n```"
    assert prompt.messages[0]["content"] == region_message(
        "python", "def f50(x):\n    return x + 50", "rename f50 to g"
    )
    assert prompt.predicted == region_answer("python", "def f50(x):\n    return x + 50\n")


def test_the_region_form_keeps_indentation_and_puts_the_instruction_on_one_line() -> None:
    text = "class A:\n    def f(self):\n        pass\n"
    prompt = build("region", text, (1, 3), " do\n this ")
    assert prompt.messages[0]["content"] == "```python\n    def f(self):\n        pass\n```\ndo this"
    assert prompt.indent == ""


def test_an_empty_region_has_an_empty_line_in_its_fence() -> None:
    assert region_message("", "", "write it") == "```\n\n```\nwrite it"
    assert region_answer("", "") == region_answer("", "\n") == "```\n\n```"


def test_the_chat_form_has_the_file_then_the_region_then_the_instruction() -> None:
    prompt = build("chat")
    system, user = prompt.messages
    assert system == {"role": "system", "content": SYSTEM}
    assert user["role"] == "user"
    assert user["content"] == (
        f"The file a.py:\n\n```python\n{TEXT}```\n\nRewrite lines 201-202:\n\n{prompt.predicted}\n\nrename f50 to g"
    )


def test_what_comes_before_the_instruction_does_not_depend_on_it() -> None:
    one, other = build("chat", instruction="rename f50 to g"), build("chat", instruction="")
    assert one.messages[1]["content"].startswith(other.messages[1]["content"])


def test_the_chat_form_takes_the_common_indentation_off() -> None:
    text = "class A:\n\tdef f(self):\n\n\t\tpass\n"
    prompt = build("chat", text, (1, 4))
    assert (prompt.predicted, prompt.indent) == ("```python\ndef f(self):\n\n\tpass\n```", "\t")
    exact = build("chat", text, (1, 4), "remove the blank lines")
    assert (exact.predicted, exact.indent) == ("```python\n\tdef f(self):\n\n\t\tpass\n```", "")


def test_an_instruction_about_indentation_leaves_it_in_sight() -> None:
    text = "class A:\n    x = 1\n"
    for instruction in ("indent it", "Dedent this by one level", "fix the indentation", "re-indent", "unindent"):
        assert build("chat", text, (1, 2), instruction).predicted == "```python\n    x = 1\n```"
    assert build("chat", text, (1, 2), "identify it").indent == "    "


def test_a_whole_file_is_its_own_context() -> None:
    content = build("chat", "x = 1\n", None).messages[1]["content"]
    assert content == "The file is a.py.\n\nRewrite line 1:\n\n```python\nx = 1\n```\n\nrename f50 to g"
    assert build("chat", "x = 1\n", None, path=None).messages[1]["content"].startswith("Rewrite line 1:")


def test_the_model_reads_lf_and_no_byte_order_mark() -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    assert build("chat", text).messages == build("chat").messages
    assert build("region", "\ufeffa = 1\r\nb = 2\r", None).predicted == "```python\na = 1\nb = 2\n```"


def test_blank_lines_at_both_ends_are_not_shown_unless_the_instruction_speaks_of_them() -> None:
    assert build("region", "\n\nx = 1\n\n\n", None).predicted == "```python\nx = 1\n```"
    prompt = build("region", "\n\nx = 1\n\n\n", None, "remove blank lines")
    assert (prompt.predicted, prompt.exact) == ("```python\n\n\nx = 1\n\n\n```", True)


@pytest.mark.parametrize(
    ("instruction", "exact"),
    [
        ("strip trailing whitespace", True),
        ("remove the empty lines", True),
        ("add a newline at the end", True),
        ("use trailing spaces", True),
        ("fill in the blank", True),
        ("rename Grid to Mesh", False),
        ("add a trailing comma", False),
    ],
)
def test_an_instruction_about_blanks_makes_them_count(instruction: str, exact: bool) -> None:
    assert build("chat", instruction=instruction).exact is exact


def test_the_fence_is_longer_than_any_in_the_text() -> None:
    text = "```\nx\n````\n"
    assert fence_for(text) == "`````"
    prompt = build("chat", text, None)
    assert (prompt.fence, prompt.tag) == ("`````", "python")
    assert prompt.predicted == f"`````python\n{text}`````"


def test_a_file_beyond_the_window_is_cut_at_its_top_level() -> None:
    for budget in (1200, 2000, 2800, 3400):
        prompt = build("chat", budget=budget)
        content = prompt.messages[1]["content"]
        used = len(content) + len(SYSTEM) + len(prompt.predicted)
        assert used <= budget
        head, shown = content.split(":\n\n```python\n", 1)
        shown = shown[: shown.index("```")]
        assert shown.startswith("def f")
        assert shown.endswith("\n")
        assert shown in TEXT
        assert "def f50(x):" in shown
        assert shown.count("def ") > (1 if budget < 2000 else 8)
        first = TEXT[: TEXT.index(shown)].count("\n") + 1
        assert head == f"The file a.py, lines {first}-{first + shown.count(chr(10)) - 1} of {TEXT.count(chr(10))}"


def test_a_window_for_the_region_alone_gives_the_region_alone() -> None:
    alone = len(SYSTEM) + 24 + len(build("chat", "x = 1\n", None).messages[1]["content"])
    content = build("chat", budget=alone + 200).messages[1]["content"]
    assert content.startswith("The file is a.py.\n\nRewrite lines 201-202:")


def test_a_region_beyond_the_window_is_refused_with_figures() -> None:
    for form in ("chat", "region"):
        with pytest.raises(PromptTooLong) as refusal:
            build("chat" if form == "chat" else "region", lines=None, budget=1000)
        message = str(refusal.value)
        assert "the model has room for 1,000" in message
        assert "rewrite fewer lines at once, or use a model with a longer context" in message


@pytest.mark.parametrize("form", ["chat", "region"])
def test_what_cannot_fit_is_refused_without_being_counted(form: PromptForm) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    text = "x = 1\n" * 200_000
    for region, instruction, words in (
        (select_region(text), "x", "rewrite fewer lines at once"),
        (
            select_region(text, lines=(0, 1)),
            "word " * 200_000,
            "the instruction takes .* shorten it",
        ),
    ):
        with pytest.raises(PromptTooLong, match=words):
            build_prompt(
                form,
                path=None,
                language=None,
                text=text,
                region=region,
                instruction=instruction,
                budget=8192,
                count=count,
            )
    assert not counted


def test_of_a_huge_file_only_what_may_fit_is_counted() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 3

    text = "x = 1\n" * 200_000
    region = select_region(text, lines=(500, 501))
    build_prompt("chat", path=None, language=None, text=text, region=region, instruction="x", budget=8192, count=count)
    assert max(counted) < 60_000


def test_without_a_tokenizer_the_length_is_guessed() -> None:
    region = select_region(TEXT)
    with pytest.raises(PromptTooLong):
        build_prompt("chat", path=None, language=None, text=TEXT, region=region, instruction="x", budget=1000)
    build_prompt("chat", path=None, language=None, text=TEXT, region=region, instruction="x", budget=100_000)


def test_mixed_line_ends_count_the_same_lines_as_the_region() -> None:
    text = "a = 1\rb = 2\r\nc = 3\nd = 4"
    prompt = build("chat", text, (1, 3))
    assert prompt.predicted == "```python\nb = 2\nc = 3\n```"
    assert normalise(text) in prompt.messages[1]["content"]
