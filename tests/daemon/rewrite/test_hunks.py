"""The hunk stream by example: when a hunk leaves, and what it holds."""

import pytest

from specd.daemon.rewrite.hunks import HELD_FROM, Hunk, HunkStream, apply_hunks

BODY = [f"value_{at} = compute({at})\n" for at in range(60)]


def test_a_hunk_leaves_when_the_text_is_in_step_again() -> None:
    stream = HunkStream("".join(BODY))
    assert stream.push("".join(BODY[:3]) + "value_3 = 0\n") == []
    assert stream.push("value_4 = compute(4)") == [], "its line is not complete"
    assert stream.push("\n") == [Hunk(3, 4, ("value_3 = 0\n",), ("value_3 = compute(3)\n",))]


def test_a_line_that_the_tokenizer_composed_keeps_its_bytes() -> None:
    original = "caf\u0065\u0301 = 1\nother = 2\n"
    stream = HunkStream(original)
    hunks = stream.push("caf\u00e9 = 1\nother = 3\n") + stream.finish(complete=True)
    assert [hunk.start_line for hunk in hunks] == [1]
    assert stream.result == "caf\u0065\u0301 = 1\nother = 3\n"


def test_a_deletion_waits_for_lines_that_prove_it() -> None:
    stream = HunkStream("".join(BODY))
    assert stream.push("".join(BODY[:3])) == []
    assert stream.push(BODY[6]) == [], "one line could be a copy of it"
    assert stream.push(BODY[7] + BODY[8]) == [Hunk(3, 6, (), tuple(BODY[3:6]))]


def test_a_large_deletion_and_what_follows_it_wait_for_the_end() -> None:
    new = [*BODY[:3], *BODY[3 + HELD_FROM : 50], "value_50 = 0\n", *BODY[51:]]
    stream = HunkStream("".join(BODY))
    assert stream.push("".join(new)) == []
    assert [hunk.start_line for hunk in stream.finish(complete=True)] == [3, 50]
    cut = HunkStream("".join(BODY))
    assert cut.push("".join(new)) == cut.finish(complete=False) == []
    assert cut.result == "".join(BODY), "lines that may come again are not lost"
    assert cut.kept_from == 3


def test_moved_lines_that_never_arrive_are_not_lost() -> None:
    """A model that moves a function below another writes the other first: cut off there, the first must still be."""
    new = BODY[20:60] + BODY[:20]
    for length in range(0, 60, 7):
        stream = HunkStream("".join(BODY))
        stream.push("".join(new[:length]))
        stream.finish(complete=False)
        assert set(BODY) <= set(stream.result.splitlines(keepends=True))


def test_what_is_not_in_step_at_the_end_is_settled_there() -> None:
    stream = HunkStream("a\nb\nc\n")
    assert stream.push("a\nx\ny") == []
    assert stream.finish(complete=True) == [Hunk(1, 3, ("x\n", "y\n"), ("b\n", "c\n"))]


def test_equal_lines_inside_a_hunk_split_it() -> None:
    stream = HunkStream("a1\nb1\n}\nc1\nd1\n")
    stream.push("a2\nb2\n}\nc2\nd2\n")
    assert [(h.start_line, h.end_line) for h in stream.finish(complete=True)] == [(0, 2), (3, 5)]


def test_new_lines_end_as_the_lines_that_they_stand_for() -> None:
    stream = HunkStream("a = 1\r\nb = 2\nc = 3\r\n")
    stream.push("a = 10\nb = 20\nc = 3\nd = 4\n")
    assert "".join(stream.finish(complete=True)[0].new_lines) == "a = 10\r\nb = 20\n"
    assert stream.result == "a = 10\r\nb = 20\nc = 3\r\nd = 4\r\n"


def test_the_line_end_given_is_for_regions_that_have_none() -> None:
    stream = HunkStream("a", eol="\r\n")
    stream.push("a\nb")
    assert stream.finish(complete=True) == [Hunk(0, 1, ("a\r\n", "b"), ("a",))]


def test_a_cr_and_a_lone_lf_never_become_one_line_end() -> None:
    original = "a\rb\r\n\nc\n"
    stream = HunkStream(original)
    stream.push("a\n\nc\n")
    stream.finish(complete=True)
    assert stream.result == "a\r\r\nc\n", "deleting b must not make one line of a and the blank one"


def test_a_new_line_joins_no_line_beside_it() -> None:
    for original, text, expected in (
        ("a\rb\nc\n", "a\n\nc\n", "a\r\r\nc\n"),
        ("x\rb\n\nc\n", "y\n\nc\n", "y\r\n\nc\n"),
    ):
        stream = HunkStream(original)
        stream.push(text)
        stream.finish(complete=True)
        assert stream.result == expected


def test_omission_lines_keep_what_they_stand_for() -> None:
    stream = HunkStream("".join(BODY))
    stream.push("value_0 = 0\n" + BODY[1] + "# ... existing code ...\n" + BODY[30] + "value_31 = 0\n" + BODY[32])
    stream.push("# ... rest unchanged\n")
    stream.finish(complete=True)
    assert stream.result == "".join(["value_0 = 0\n", *BODY[1:31], "value_31 = 0\n", *BODY[32:]])
    assert stream.omissions == ["# ... existing code ...", "# ... rest unchanged"]
    assert stream.halted is None


def test_an_omission_between_changed_lines_stops_the_rewrite_there() -> None:
    stream = HunkStream("".join(BODY))
    hunks = stream.push("value_0 = 0\n" + "".join(BODY[1:5]) + "value_5 = 0\n# ...\nvalue_9 = 0\n" + "".join(BODY[10:]))
    hunks += stream.finish(complete=True)
    assert hunks == [Hunk(0, 1, ("value_0 = 0\n",), (BODY[0],))]
    assert stream.halted == 'the model left lines out ("# ...") and it cannot be told which'
    assert stream.kept_from == 5


def test_an_omission_before_a_line_that_occurs_often_stops_the_rewrite_there() -> None:
    original = "start()\n" + "if a:\n    b()\n" * 4
    stream = HunkStream(original)
    stream.push("start()\n# ...\n    b()\nend()\n")
    assert stream.finish(complete=True) == []
    assert stream.halted is not None
    assert stream.result == original


def test_lines_dropped_right_before_an_omission_are_not_taken_as_deleted() -> None:
    stream = HunkStream("".join(BODY))
    assert stream.push("".join(BODY[:3]) + BODY[9] + "# ... rest unchanged\n") == []
    assert stream.finish(complete=True) == []
    assert stream.halted is not None
    assert stream.result == "".join(BODY)


def test_the_place_after_an_omission_is_where_only_one_is_possible() -> None:
    original = "start()\nalpha()\nbeta()\none()\nalpha()\nbeta()\ntwo()\n"
    stream = HunkStream(original)
    stream.push("start()\n# ...\nalpha()\nbeta()\ntwo()\n")
    assert stream.finish(complete=True) == []
    assert stream.halted is None
    assert stream.result == original


def test_lines_after_an_omission_that_fit_nowhere_at_the_end_stop_the_rewrite() -> None:
    original = "start()\n" + "if a:\n    b()\n" * 4 + "finish()\n"
    stream = HunkStream(original)
    stream.push("start()\n# ...\n    b()\n")
    assert stream.finish(complete=True) == []
    assert stream.halted is not None


def test_a_comment_that_the_original_has_is_no_omission() -> None:
    original = "a\n# ...\nb\n"
    stream = HunkStream(original)
    stream.push("# ...\nb\n")
    stream.finish(complete=True)
    assert stream.result == "# ...\nb\n"


def test_hunks_for_another_text_are_refused() -> None:
    hunk = Hunk(1, 2, ("x\n",), ("b\n",))
    assert apply_hunks("a\nb\n", [hunk]) == "a\nx\n"
    with pytest.raises(ValueError, match="not those"):
        apply_hunks("a\nc\n", [hunk])
    with pytest.raises(ValueError, match="out of place"):
        apply_hunks("a\nb\n", [hunk, hunk])
    with pytest.raises(ValueError, match="out of place"):
        apply_hunks("a\n", [hunk])
