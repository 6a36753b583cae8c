"""The words of each outcome: one sentence that says what happened and what is left."""

import pytest

from specd.daemon.protocol import Cancelled, Declined, Done, Failed, NoChange, Outcome, Summary, Truncated
from specd.lsp.messages import CLOSED, done, edits, reverted
from specd.lsp.outcomes import Facts, said_of

RUN = Summary(tokens=930, accepted=809, generate_seconds=0.3)
NONE = Summary()


def facts(**changes: object) -> Facts:
    usual = {"hunks": 5, "lost": [], "lines": 212, "seconds": 0.92, "cancelled": None, "reason": ""}
    return Facts(**{**usual, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "known", "name", "message"),
    [
        (Done("", RUN), {}, "done", "5 hunks, 0.9 s (212 lines, 3.1k tok/s, 87 % drafted)"),
        (
            Done("", RUN, ("a note",)),
            {"hunks": 1},
            "done",
            "1 hunk, 0.9 s (212 lines, 3.1k tok/s, 87 % drafted); a note",
        ),
        (
            Done("", RUN),
            {"lost": ["40-44", "61"]},
            "conflict",
            "the text changed under the rewrite: 2 of 7 hunks not applied (lines 40-44, 61)",
        ),
        (
            Done("", RUN),
            {"hunks": 0, "lost": ["3"], "reason": "the editor refused the edit: read-only"},
            "conflict",
            "the editor refused the edit: read-only: 1 of 1 hunk not applied (line 3)",
        ),
        (NoChange(NONE), {"hunks": 0}, "no_change", "the model changed nothing"),
        (
            Declined("the model declined: no.", NONE),
            {"hunks": 0},
            "declined",
            "the model declined: no; nothing was changed",
        ),
        (
            Truncated("the answer broke off; lines 8-9 are as before", "", NONE),
            {"hunks": 2},
            "truncated",
            "the answer broke off; lines 8-9 are as before; 2 hunks applied so far stay (specd.revert takes them back)",
        ),
        (
            Cancelled("the daemon was stopped"),
            {"hunks": 0},
            "cancelled",
            "cancelled (the daemon was stopped); nothing was changed",
        ),
        (
            Done("", RUN),
            {"hunks": 1, "cancelled": "undone"},
            "cancelled",
            "cancelled (undone); 1 hunk applied so far stays (specd.revert takes it back)",
        ),
        (
            Failed("refused", "the region has 9 lines; the limit is 4.\nRewrite a part of it: --range A:B.", NONE),
            {"hunks": 0},
            "refused",
            "the region has 9 lines; the limit is 4. Select fewer lines; nothing was changed",
        ),
        (
            Failed("refused", "the text is empty; there is nothing to rewrite.", NONE, says_unchanged=True),
            {"hunks": 0},
            "refused",
            "the text is empty; there is nothing to rewrite",
        ),
        (
            Declined("the model answered no code: nothing changed", NONE, says_unchanged=True),
            {"hunks": 0},
            "declined",
            "the model answered no code: nothing changed",
        ),
        (  # what the model says is no word of ours
            Declined("the model declined: nothing was changed in my answer.", NONE),
            {"hunks": 0},
            "declined",
            "the model declined: nothing was changed in my answer; nothing was changed",
        ),
        (  # there are hunks, whatever the message says
            Declined("the model answered no code: nothing changed", NONE, says_unchanged=True),
            {"hunks": 1},
            "declined",
            "the model answered no code: nothing changed; 1 hunk applied so far stays (specd.revert takes it back)",
        ),
        (
            Failed("unavailable", "try `specd stop --now`.", NONE),
            {"hunks": 0},
            "error",
            "try `specd stop --now`; nothing was changed",
        ),
    ],
)
def test_each_outcome_has_its_words(outcome: Outcome, known: dict[str, object], name: str, message: str) -> None:
    said = said_of(outcome, facts(**known))
    assert (said.name, said.message) == (name, message)


def test_a_revert_says_what_it_left() -> None:
    assert reverted(0, []) == "there is nothing to take back"
    assert reverted(1, []) == "took 1 hunk back"
    assert reverted(0, ["4"]).endswith("left line 4, which changed since")
    assert reverted(0, ["4", "7-9"]) == "took 0 hunks back; left lines 4, 7-9, which changed since"


def test_one_is_not_many_and_none_is_left_out() -> None:
    assert edits(1, 4.2, 6.1) == "1 edit, 4 ms each, shown after 6 ms"
    assert edits(3, 4.2, 6.1).startswith("3 edits, ")
    assert done(0, 0.04, NONE, 0) == "0 hunks, 0.0 s"


def test_what_was_cut_off_and_what_was_in_conflict_are_both_said() -> None:
    said = said_of(Truncated("the answer broke off", "", NONE), facts(hunks=1, lost=["4", "4"]))
    expected = "the answer broke off; 1 hunk applied so far stays (specd.revert takes it back); "
    assert said.message == expected + "the text changed under the rewrite: 2 of 3 hunks not applied (line 4)"


def test_of_a_document_that_was_closed_it_is_not_said_that_something_stays() -> None:
    said = said_of(Cancelled(""), facts(hunks=1, cancelled=CLOSED))
    assert said.message == "cancelled (the document was closed, with 1 hunk in it)"
    said = said_of(Cancelled(""), facts(hunks=0, cancelled=CLOSED))
    assert said.message == "cancelled (the document was closed); nothing was changed"
