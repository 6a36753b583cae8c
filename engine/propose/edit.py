"""Edit-aware drafting: the old text is the draft, aligned with what the model has written, with its substitutions applied ahead."""

from collections.abc import Sequence as Pairs

import torch

from specd.engine.draft import Committed, Draft, Sequence
from specd.engine.propose.edit_find import Candidate, Lost, candidates
from specd.engine.propose.edit_plan import Plan, Rewriter
from specd.engine.propose.edit_rules import Rule, RuleBook, as_pattern, explain, general
from specd.engine.propose.edit_source import Source, TextTokenizer, TokenText, encode_bytes, is_word
from specd.engine.propose.edit_weights import worth
from specd.engine.propose.ngram import NgramIndex

HOOK = None
TAIL = 400  # bytes of emitted text kept to align by


class EditProposer:
    name = "edit"

    def __init__(
        self,
        tokenizer: TextTokenizer,
        predicted: str,
        pairs: Pairs[tuple[str, str]] = (),
        *,
        max_k: int = 128,
        end_ids: tuple[int, ...] = (),
    ) -> None:
        self.max_k = max_k
        self._tokens = TokenText(tokenizer)
        self._source = Source(predicted, self._tokens)
        self._pairs = pairs
        self._end_ids = end_ids
        self._ngrams = NgramIndex(5)
        self._reset()

    def _reset(self) -> None:
        self._rules = RuleBook(self._source)
        for old, new in self._pairs:
            pattern = as_pattern(encode_bytes(old))
            if pattern:
                self._rules.add(Rule(pattern, encode_bytes(new), seeded=True))
        self._rewriter = Rewriter(self._source, self._rules, self._tokens)
        self._seen = -1  # tokens of the sequence taken over
        self._prompt = 0
        self._lost: Lost | None = None
        self._trial: Candidate | None = None
        self._index = 0  # tokens of the plan that were emitted
        self._plan: Plan | None = None
        self.trace: list[object] = []

    def propose(self, seq: Sequence, k: int) -> Draft:
        self._feed(seq)
        k = min(k, self.max_k)
        if self._lost is not None:
            self._guess(seq)
        drafted: list[int] = []
        if self._plan is not None:
            self._plan.grow(self._index + k)
            drafted = self._plan.tokens[self._index : self._index + k]
        elif self._trial is not None:
            drafted = self._trial.tokens[:k]
        return Draft(torch.tensor(drafted, dtype=torch.int32))

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self._feed(seq)

    def truncate(self, length: int) -> None:
        if length < self._seen:
            self._ngrams.truncate(length)
            self._reset()

    # -- following the output --

    def _feed(self, seq: Sequence) -> None:
        if self._seen < 0:
            self._prompt = min(seq.prompt_length, len(seq.tokens))
            self._seen = self._prompt
            self._plan = Plan(self._rewriter, self._rewriter.rest(0, 0), 1, "", (), end_ids=self._end_ids)
            self._ngrams.extend(seq.tokens[len(self._ngrams) :])
        elif len(self._ngrams) < len(seq.tokens):
            self._ngrams.extend(seq.tokens[len(self._ngrams) :])
        tokens = seq.tokens
        while self._seen < len(tokens):
            if self._plan is None:
                self._stray(tokens[self._seen])
                self._seen += 1
                continue
            plan = self._plan
            plan.grow(self._index + len(tokens) - self._seen)
            while (
                self._seen < len(tokens)
                and self._index < len(plan.tokens)
                and plan.tokens[self._index] == tokens[self._seen]
            ):
                self._index += 1
                self._seen += 1
            if self._seen < len(tokens):
                self._mismatch(seq, tokens[self._seen])
                self._seen += 1
            if self._lost is not None and self._plan is not None:
                self._judge()

    def _stray(self, token: int) -> None:
        assert self._lost is not None
        self._lost.write(self._tokens[token])

    def _context(self, seq: Sequence, upto: int) -> tuple[str, list[int]]:
        """Text and tokens of the output's current line, up to the token at `upto`."""
        begin = upto
        texts = self._tokens
        floor = max(self._prompt, upto - 64)
        if self._source.cut_behind:
            begin = max(begin - 1, floor)
            while begin > floor and not texts[seq.tokens[begin - 1]].endswith("\n"):
                begin -= 1
        else:
            while begin > floor:
                begin -= 1
                if texts[seq.tokens[begin]].lstrip("\r").startswith("\n"):
                    break
        ids = seq.tokens[begin:upto]
        return texts.join(ids), ids

    def _mismatch(self, seq: Sequence, token: int) -> None:
        """The plan's next token is not `token`: the same text in other tokens, or a divergence."""
        plan = self._plan
        assert plan is not None
        written = self._tokens[token]
        chunk, offset = plan.locate(self._index)
        rest = plan.cut(chunk, offset)
        ahead = "".join([piece.text for piece in rest])
        behind = plan.unit_behind(chunk)
        shift = plan._shift
        while len(ahead) < len(written) and chunk + 1 < len(plan.chunks):
            chunk += 1
            more = plan.chunks[chunk].pieces
            rest += more
            ahead += "".join([piece.text for piece in more])
            behind = plan.unit_behind(chunk)
        if ahead.startswith(written) and written:
            left = len(written)
            while left:
                piece = rest[0]
                if left >= len(piece.text):
                    left -= len(piece.text)
                    del rest[0]
                else:
                    start = piece.start if piece.rule else max(piece.end - (len(piece.text) - left), piece.start)
                    rest[0] = type(piece)(piece.text[left:], start, piece.end, piece.rule, piece.at)
                    left = 0
            context, ids = self._context(seq, self._seen + 1)
            self._plan = Plan(
                self._rewriter, rest, behind, context, ids, shift=shift, extra=plan._extra, end_ids=self._end_ids
            )
            self._index = 0
            return
        if self._lost is not None and self._trial is not None and not self._confirmed():
            # the guess was wrong: everything since the divergence is new text
            self._lost.refused[self._trial.key] = self._lost.refused.get(self._trial.key, 0) + 1
            emitted = self._tokens.join(plan.tokens[: self._index])
            self._lost.write(emitted + written)
            self._plan, self._trial = None, None
            return
        if self._lost is not None:
            self._confirm()
        self._credit(plan)
        self._diverge(seq, rest, ahead, written, shift)

    def _credit(self, plan: Plan) -> None:
        """Count the rules whose text the target wrote."""
        chunk, offset = plan.locate(self._index)
        for number in range(plan.counted, chunk + 1):
            at = 0
            for piece in plan.chunks[number].pieces:
                at += len(piece.text)
                if piece.rule is not None and (number < chunk or at <= offset):
                    piece.rule.right += 1
        plan.counted = chunk + 1

    def _diverge(self, seq: Sequence, rest: list, ahead: str, written: str, shift: int) -> None:
        source = self._source
        same = 0
        while same < min(len(written), len(ahead)) and written[same] == ahead[same]:
            same += 1
        at = same
        piece = None
        for piece in rest:
            if at < len(piece.text):
                break
            at -= len(piece.text)
        before = self._tokens.join(seq.tokens[max(self._prompt, self._seen - 100) : self._seen])[-TAIL:]
        rule = None
        place = -1
        if piece is None:
            offset, back = len(source.text), 0
        elif piece.rule is not None:
            rule, place = piece.rule, piece.at
            offset = source.starts[piece.at] if piece.at >= 0 else piece.start
            # how much of the rule's text was written already
            back = at + (len(piece.rule.text) - len(piece.text))
            if self._rules.find(rule.pattern, rule.left) is rule:
                self._rules.refuse(rule, piece.at)
        else:
            offset, back = max(piece.end - (len(piece.text) - at), piece.start), 0
            lexeme = source.lexeme_at(offset)
            if lexeme < len(source) and is_word(source.lexemes[lexeme]):
                back = offset - source.starts[lexeme]
                offset = source.starts[lexeme]
            elif lexeme == len(source) or (lexeme > 0 and source.starts[lexeme] == offset):
                # a word that was copied whole and goes on: foo -> foobar
                last = source.lexemes[lexeme - 1] if lexeme else ""
                if written[same : same + 1].isidentifier() or written[same : same + 1].isdigit():
                    if last and is_word(last):
                        back = len(last)
                        offset = source.starts[lexeme - 1]
        text = before + written
        cutoff = len(before) + same - back
        old = self._lost
        anchors = [] if old is None else old.anchors
        self._lost = Lost(
            offset=offset,
            before=text[: max(cutoff, 0)][-TAIL:],
            since=text[max(cutoff, 0) :],
            shift=shift,
            rule=rule,
            place=place,
            anchors=anchors[-2:],
        )
        self._plan, self._trial = None, None

    def _confirmed(self) -> bool:
        """The guess held: the target went on with about one word of the source (two, behind the place it left)."""
        plan, trial = self._plan, self._trial
        assert plan is not None and trial is not None and self._lost is not None
        text = self._tokens.join(plan.tokens[: self._index])
        need = 2 if trial.offset < self._lost.offset else 1
        words = sum(1 for lexeme in as_pattern(text) if is_word(lexeme))
        return words >= need or self._index >= 4

    def _judge(self) -> None:
        if self._trial is not None and self._index and self._confirmed():
            self._confirm()

    def _confirm(self) -> None:
        lost, trial = self._lost, self._trial
        assert lost is not None and trial is not None
        source = self._source
        first, last = source.lexeme_at(lost.offset), source.lexeme_at(trial.offset)
        if trial.extra is not None:
            self._rules.add(trial.extra)
        elif first <= last <= first + 40 and source.starts[last] == trial.offset and len(lost.since) < TAIL:
            rule = explain(source, first, last, lost.since)
            if rule is not None:
                self._rules.add(general(rule, source, first))
        anchors = lost.anchors
        if abs(trial.offset - lost.offset) > 200 or trial.offset < lost.offset:
            anchors = [*anchors, lost.offset][-3:]
        self._lost = None
        self._kept_anchors = anchors
        self._trial = None

    # -- guessing --

    def _guess(self, seq: Sequence) -> None:
        if self._plan is not None:
            return  # a guess that is being accepted
        lost = self._lost
        assert lost is not None
        context, ids = self._context(seq, len(seq.tokens))
        best: Candidate | None = None
        found = candidates(self._source, self._rules, lost, self._tokens, self._ngrams)
        if HOOK is not None:
            HOOK(self, seq, found, context, ids)
        tried = 0
        for candidate in found:
            if best is not None and candidate.gain <= best.gain or tried >= 4:
                break
            if not candidate.tokens:
                tried += 1
                candidate.plan = self._plan_of(candidate, context, ids)
                if not candidate.plan.agrees:
                    candidate.gain = worth(candidate.kind, candidate.feats | {"disagrees": 1.0})
            if best is None or candidate.gain > best.gain:
                best = candidate
        self._trial = best
        if best is not None and best.plan is not None:
            self._plan, self._index = best.plan, 0

    def _plan_of(self, candidate: Candidate, context: str, ids: list[int]) -> Plan:
        source = self._source
        unit = source.unit_at(candidate.offset)
        pieces = self._rewriter.rest(candidate.offset, candidate.shift, candidate.extra)
        if candidate.lead:
            from specd.engine.propose.edit_rules import Piece

            pieces.insert(0, Piece(candidate.lead, candidate.offset, candidate.offset))
        return Plan(
            self._rewriter,
            pieces,
            unit + 1,
            context,
            ids,
            shift=candidate.shift,
            extra=candidate.extra,
            end_ids=self._end_ids,
        )
