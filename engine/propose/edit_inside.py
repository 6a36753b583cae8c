"""Names of the instruction inside longer words: where `foo` becomes `bar`, `foo_list` may become `bar_list`.

Most renames mean whole words, so nothing is made of it until the target has begun such a word.
"""

import re
from collections.abc import Sequence

from specd.engine.propose.edit_guess import Guess, Lost
from specd.engine.propose.edit_rules import Rule, RuleBook
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import is_word

SHORTEST = 2  # letters of a name that is looked for
MOST_ALIKE = 128  # words that get their rules at once


class Inside:
    """The names, all replaced at once: a and b may change places."""

    def __init__(self, source: Source, pairs: Sequence[tuple[tuple[str, ...], str]] = ()) -> None:
        """pairs: (lexemes, text) of the rules that the instruction names; those for one word count."""
        self._source = source
        self._names: dict[str, str] = {}
        for pattern, text in pairs:
            if len(pattern) == 1 and is_word(pattern[0]) and len(pattern[0]) >= SHORTEST:
                self._names.setdefault(pattern[0], text)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._either = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        places = source.places
        alike = [word for word in source.words_that_hold(self._either) if word not in self._names] if pairs else []
        alike.sort(key=lambda word: places[word][0])
        self._alike = [(places[word][0], word, self.renamed(word)) for word in alike]  # by their first place

    def renamed(self, word: str) -> str:
        """The word with the names in it replaced; itself if it is one of them."""
        return word if word in self._names else self._either.sub(lambda found: self._names[found[0]], word)

    def begun(self, rules: RuleBook, lost: Lost) -> Guess | None:
        """The rest of a renamed word that was begun and that the source's word would not have begun with. Then every
        word that holds one of the names and was not passed yet gets a rule."""
        source = self._source
        at = source.lexeme_at(lost.offset)
        if not self._names or at >= len(source) or not lost.since or source.starts[at] != lost.offset:
            return None
        old = source.lexemes[at]
        new = self.renamed(old)
        if not is_word(old) or new == old or old.startswith(lost.since) or not new.startswith(lost.since):
            return None
        alike = [Rule((word,), text) for place, word, text in self._alike if place >= at and not rules.has(word)]
        if alike:
            rules.add_all(alike[:MOST_ALIKE])
        return Guess("inside", source.starts[at + 1], (), shift=lost.shift, lead=new[len(lost.since) :])
