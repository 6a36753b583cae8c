"""What a model may write in place of code, told by its form: sentences, refusals, patches. Pure functions of lines."""

import re
from collections.abc import Iterable, Sequence

_REFUSES = re.compile(
    r"\b(?:sorry|cannot|can['’]?t|unable|not able|could you|please (?:clarify|provide|tell)|do you (?:want|mean))\b",
    re.I,
)
_SENTENCE = re.compile(r"[A-Z][\w'’,-]*[!.:,]?(?: \S+ \S+|$)")
_COMMENT = re.compile(r"^[ \t]*(?:#+|//+|/\*+|--+|;+|%+|\*+|<!--)?[ \t]*")
_PATCH = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+")  # git's header, and a hunk's
_OLD_NAME, _NEW_NAME = "--- ", "+++ "  # the two lines of POSIX diff -u that name the files
PATCH_TAGS = ("diff", "patch")


def refuses(text: str) -> bool:
    """Whether `text` has the words of a refusal or of a question back."""
    return bool(_REFUSES.search(text))


def is_sentence(lines: Iterable[str]) -> bool:
    """Whether `lines` together are prose: they begin like a sentence and end like one."""
    text = " ".join(line.strip() for line in lines)
    return text.endswith((".", ":", "!", "?")) and bool(_SENTENCE.match(text))


def is_refusal(lines: Sequence[str]) -> bool:
    """Whether `lines`, as they are or as a comment, are a refusal in a sentence."""
    bare = [_COMMENT.sub("", line) for line in lines]
    return is_sentence(bare) and refuses(" ".join(bare))


def is_patch(first: str, second: str | None, *, tag: str) -> bool | None:
    """Whether code that begins with the lines `first` and `second` is a patch (POSIX diff -u, or git's).

    second: None while it is not there yet; tag: the fence's. None: the second line will tell.
    """
    if _PATCH.match(first) or (tag in PATCH_TAGS and first[:1] in ("+", "-", "@", " ")):
        return True
    if not first.startswith(_OLD_NAME):
        return False
    return None if second is None else second.startswith(_NEW_NAME)
