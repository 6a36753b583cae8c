"""The tokens of changed text: the source's own wherever it is copied, new ones around each change."""

from array import array
from collections.abc import Sequence as Tokens

from specd.engine.propose.edit_rules import Piece, Site
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, is_seam

MOST_ENCODED = 4096  # short texts whose tokens are remembered
Run = tuple[str, int, int]  # some text, and behind it the source's bytes from one place to another


class Splicer:
    """Tokenizes as little as it can: from border to border around a change, and each segment once."""

    def __init__(self, source: Source, texts: TokenText) -> None:
        self._source, self._texts = source, texts
        self._encoded: dict[str, array[int]] = {}

    def encode(self, text: str) -> "array[int]":
        """Tokens of byte text, remembered by its segments: most stand in the source or were seen before."""
        encoded = self._encoded
        ids = encoded.get(text)
        if ids is not None:
            return ids
        if len(encoded) >= MOST_ENCODED:
            encoded.clear()
        segments = self._source.borders.split(text)
        if len(segments) > 1:
            ids = array("i")
            for segment in segments:
                ids += encoded.get(segment) or self._segment(segment)
        else:
            ids = self._segment(text)
        encoded[text] = ids
        return ids

    def _segment(self, text: str) -> "array[int]":
        """Tokens of one segment."""
        place = self._source.borders.segments.get(text)
        ids = array("i", self._texts.encode(text)) if place is None else self._source.tokens[place[0] : place[1]]
        self._encoded[text] = ids
        return ids

    def join(self, pieces: list[Piece], line: Tokens[int]) -> tuple["array[int]", bool]:
        """The tokens of `pieces` behind those of the output's current line; False if the target would have cut its line
        into other tokens, had it meant to go on like this."""
        texts = self._texts
        if line and pieces and self._follows(line[-1], pieces[0]):
            return self.tokenize(pieces), True
        begin, here = len(line), "".join([piece.text[:1] for piece in pieces])[:1]
        while begin > 0 and not is_seam(texts[line[begin - 1]][-1:], here):
            begin -= 1
            here = texts[line[begin]][:1]
        given = array("i", line[begin:])
        context = texts.join(given)
        ids = self.tokenize(pieces, context)
        if ids[: len(given)] == given:
            return ids[len(given) :], True
        offset = 0
        for index, token in enumerate(ids):
            if offset >= len(context):
                if offset == len(context):
                    return ids[index:], False
                break
            offset += len(texts[token])
        return self.tokenize(pieces), False

    def _follows(self, token: int, piece: Piece) -> bool:
        """The source has a border of tokens where `piece` begins to copy it, and the same one behind `token`: the same
        token stands before it, or a line begins there and `token` ends one."""
        source, start = self._source, piece.start
        if piece.rule is not None or not piece.text or piece.text != source.text[start : piece.end]:
            return False
        index = source.token_at.get(start, 0)
        if index > 0 and source.tokens[index - 1] == token:
            return True
        begins_line = source.cut_behind and source.text[start - 1 : start] == "\n"
        return begins_line and self._texts[token][-1:] == "\n" and start == source.unit_starts[source.unit_at(start)]

    def tokenize(self, pieces: list[Piece], context: str = "") -> "array[int]":
        """Tokens of `context` and the pieces behind it."""
        text, lead = self._source.text, context
        runs: list[Run] = []
        for piece in pieces:
            if piece.rule is not None or piece.text != text[piece.start : piece.end]:
                lead += piece.text
            else:
                runs.append((lead, piece.start, piece.end))
                lead = ""
        if lead:
            runs.append((lead, 0, 0))
        return self._tokens_of(runs)

    def splice(self, first: int, last: int, sites: list[Site]) -> "array[int]":
        """Tokens of the source lexemes [first, last) with the rules applied at `sites`."""
        starts = self._source.starts
        begin, lead = starts[first], ""
        runs: list[Run] = []
        for index, rule in sites:
            runs.append((lead, begin, starts[index]))
            lead, begin = rule.text, starts[min(index + len(rule.pattern), len(starts) - 1)]
        runs.append((lead, begin, max(starts[last], begin)))
        return self._tokens_of(runs)

    def _tokens_of(self, runs: list[Run]) -> "array[int]":
        """The source's own tokens wherever the runs copy it, between seams, and new ones around what was changed."""
        source = self._source
        own, at, text, borders = source.tokens, source.token_at, source.text, source.borders
        ids = array("i")
        pending = ""  # text that waits to be tokenized
        last = len(runs) - 1
        for number, (lead, start, end) in enumerate(runs):
            pending += lead
            begin, stop = start, end
            if pending or begin not in at:
                begin = borders.first(begin, pending)
            if number < last:
                following, resumes, _ = runs[number + 1]
                stop = borders.last(stop, following or text[resumes : resumes + 1])
            elif stop not in at:
                stop = borders.last(stop, "")
            if begin >= stop:
                pending += text[start:end]
                continue
            if pending := pending + text[start:begin]:
                ids += self.encode(pending)
            ids += own[at[begin] : at[stop]]
            pending = text[stop:end]
        return ids + self.encode(pending) if pending else ids
