"""The express lane: recorded answers to plain cases that are judged by checks of their text.

A large suite is one form filled in with other texts, and most of its cases pass. For those no
record is made of the case, its evaluators and their scores: the checks are tried, and the JSON
is written. Of a case that fails only as much is made as its result needs. Whatever has anything
more to it takes the usual way. Both lanes give the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from assay.engine import comparability
from assay.engine.grading import aggregate
from assay.engine.trial import Trials
from assay.model.case import EvalCase, Origin
from assay.model.evaluator import at_once
from assay.model.plain import TextEntry, TextLine
from assay.model.result import Outcome, recorded_pass
from assay.model.run import TrialRecord, entry_with, position_of
from assay.model.score import EvaluationScore, WrittenScore, full_marks
from assay.observations.own import PlainRecord, of_plain
from assay.ports import CaseStream

_encode = msgspec.json.Encoder().encode
#: A text that no author writes, to find where in a fingerprint the text stands.
_BLANK = "\ue000blank\ue000"
_Kind = str | tuple[str, str]
#: How many kinds of entries are learned.
MOST_KINDS = 1000


class PlainAnswers(Protocol):
    """Recorded answers of which some are plain."""

    def plain(self, case_id: str) -> tuple[int, PlainRecord, bytes] | None:
        """The number of an answer, what it says, and its JSON; None when it is not plain."""
        ...


class _Part(msgspec.Struct, frozen=True):
    """An evaluator of a case: its check, what is written when that holds, and its fingerprint.

    `spec` may have another text; nothing else about it differs.
    """

    spec: Any
    name: str
    text: str
    holds: Callable[[str], bool]
    passed: msgspec.Raw
    fingerprint: bytes


class _Taken(msgspec.Struct):
    """Position, id, outcome, score, duration, cost and key of trials, and in pairs their JSON.

    `used` are the numbers of the answers, `responses` what they say.
    """

    facts: list[tuple[int, str, Outcome, float | None, float, float | None, str]] = []
    documents: list[bytes] = []
    used: list[int] = []
    responses: list[str] = []


class Express:
    """Takes lines of a stream."""

    def __init__(
        self, suite: int, stream: CaseStream, trials: Trials, answers: PlainAnswers
    ) -> None:
        self._suite, self._trials, self._answers = suite, trials, answers
        self._file, self._name = trials.files[suite], stream.name
        self._reading, self._threshold = stream.reading, stream.inherited.threshold
        #: By type, and name if there is one: what is known of such entries, and the last of them.
        self._forms: dict[_Kind, _Form | None] = {}
        self._last: dict[_Kind, _Part] = {}
        self._taken = _Taken()

    def take(self, number: int, line: TextLine) -> bool:
        """Take the case on a line of the file, if it can be."""
        parts = self._filled(line.evaluators)
        found = self._answers.plain(line.id) if parts else None
        if found is None:
            return False
        used, record, observation = found
        response = record.response
        try:
            held = [part.holds(response) for part in parts]
        except TimeoutError:
            return False
        threshold = self._threshold if line.threshold is UNSET else line.threshold
        if False in held:
            scores = _scores(parts, held, response)
            case = _case(line, parts, threshold, Origin(self._name, number, 1))
            result = aggregate(case, of_plain(record, observation), scores)
            outcome, score, document = result.outcome, result.score, result.recorded(0)
        else:
            place = f"{self._name}:{number}"
            outcome, score, document = "passed", 1.0, _passed(line, parts, record, place)
        key = comparability.plain_key(line, threshold, [part.fingerprint for part in parts])
        position, spent = position_of(self._suite, number - 1), record.duration_ms or 0.0
        taken = self._taken
        taken.facts.append((position, line.id, outcome, score, spent, record.cost_usd, key))
        taken.documents += (document, observation)
        taken.used.append(used)
        taken.responses.append(response)
        return True

    def trials(self) -> tuple[list[TrialRecord], list[int], dict[int, bytes]]:
        """What was taken since it was last asked, and the answers that were used for it.

        Also the entries of result files by their positions, unless there was something to hide.
        """
        taken, self._taken = self._taken, _Taken()
        documents = self._trials.redact.all_encoded(taken.documents)
        pairs = zip(taken.facts, documents[::2], documents[1::2], strict=True)
        run, file = self._trials.run_id, self._file
        made = [
            TrialRecord(  # without the names of its fields, which would cost time
                run,
                position,
                0,  # the repeat
                file,
                case_id,
                outcome,
                score,
                spent,
                cost,
                None,  # the cost of judges
                key,
                False,  # not critical
                None,  # of no cluster
                1.0,  # the least pass rate
                0,  # skipped assertions
                False,  # confirms nothing
                True,  # final
                result,
                observation,
            )
            for (position, case_id, outcome, score, spent, cost, key), result, observation in pairs
        ]
        entries = {}
        if documents is taken.documents:
            for trial, response in zip(made, taken.responses, strict=True):
                entries[trial.position] = entry_with(trial.result, _encode(response))
        return made, taken.used, entries

    def _filled(self, entries: list[TextEntry]) -> list[_Part]:
        """The evaluators of a case; none when one of them is no check of a text.

        Most entries of a kind have either a text of their own or always the same.
        """
        parts, last = [], self._last
        for entry in entries:
            kind = entry.type if entry.name is UNSET else (entry.type, entry.name)
            part = last.get(kind)
            if part is None or part.text != entry.value:
                part = self._part(kind, entry)
                if part is None:
                    return []
                last[kind] = part
            parts.append(part)
        return parts if len({part.name for part in parts}) == len(parts) else []

    def _part(self, kind: _Kind, entry: TextEntry) -> _Part | None:
        if kind in self._forms:
            form = self._forms[kind]
        elif kind not in self._last and len(self._forms) + len(self._last) >= MOST_KINDS:
            return None  # names are of one case each: nothing is gained by knowing them
        else:
            spec = self._read(entry)
            if spec is None:
                return None
            form = _Form.of(spec)
            if form is None or spec.free_text:  # else each text has to be read
                self._forms[kind] = form
        return None if form is None else form.filled(entry.value)

    def _read(self, entry: TextEntry) -> Any:
        """The evaluator of an entry; None when there is something to say about it."""
        reading = self._reading
        specs = at_once([_encode(entry)], lambda _: msgspec.to_builtins(entry), reading)
        if reading.notes:
            reading.notes.clear()  # it is said by whoever looks closer
            return None
        return specs[0] if specs else None


def _scores(parts: list[_Part], held: list[bool], response: str) -> list[EvaluationScore]:
    return [
        full_marks((part.spec.hit(part.text),))
        if holds
        else EvaluationScore(0.0, misses=(part.spec.text_check(part.text).miss(response),))
        for part, holds in zip(parts, held, strict=True)
    ]


def _case(line: TextLine, parts: list[_Part], threshold: float | None, origin: Origin) -> EvalCase:
    """As much of a case as its result needs."""
    specs = tuple([part.spec for part in parts])
    more: Any = {"threshold": threshold, "locate": lambda steps: origin}
    return EvalCase(line.id, (), specs, _description(line), **more)


def _passed(line: TextLine, parts: list[_Part], record: PlainRecord, place: str) -> bytes:
    """The JSON of the result of a case of which every check holds."""
    tools = record.tool_calls
    return recorded_pass(
        line.id,
        _description(line),
        record.duration_ms or 0.0,
        [part.passed for part in parts],
        None if tools is None else [call.name for call in tools],
        record.usage,
        record.cost_usd,
        place,
    )


def _description(line: TextLine) -> str:
    return "" if line.description is UNSET else line.description


class _Form(msgspec.Struct, frozen=True):
    """An evaluator with a blank for its text: what stands before and after that in its JSON."""

    spec: Any
    passed: tuple[bytes, bytes]
    fingerprint: tuple[bytes, bytes]

    @classmethod
    def of(cls, spec: Any) -> _Form | None:
        """The form of one of our checks of a text, if full marks are all that it takes to pass."""
        if not _checks_a_text(type(spec)):
            return None
        if spec.required is not False or not spec.weight or spec.free_text not in ("", "value"):
            return None
        score = WrittenScore(spec.name, spec.type, spec.weight, 1.0, "pass", (_BLANK,), ())
        blank = spec.model_copy(update={"value": _BLANK})
        return cls(spec, _around(_encode(score)), _around(blank.fingerprint()))

    def filled(self, text: str) -> _Part:
        spec, (before, after) = self.spec, self.passed
        passed = msgspec.Raw(before + _encode(spec.hit(text)) + after)
        before, after = self.fingerprint
        fingerprint = before + _encode(text) + after
        return _Part(spec, spec.name, text, spec.holder(text), passed, fingerprint)


def _checks_a_text(kind: type) -> bool:
    """Whether its `text_check` is all that it does: a class made from it may judge otherwise."""
    home = {name: cls for cls in reversed(kind.__mro__) for name in vars(cls)}
    return "text_check" in home and home["text_check"] is home.get("prepare")


def _around(data: bytes) -> tuple[bytes, bytes]:
    before, _, after = data.partition(_encode(_BLANK))
    return before, after
