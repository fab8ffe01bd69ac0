"""The express lane: recorded answers to plain cases that are judged by checks of their text.

A large suite is one form filled in with other texts, and most of its cases pass. For those no
record is made of the case, its evaluators and their scores: the checks are tried, and the JSON
is written. Of a case that fails only as much is made as its result needs. Whatever has anything
more to it takes the usual way. Both lanes give the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import UNSET

from assay.documents.json import same_keys
from assay.engine import comparability
from assay.engine.trial import Trials
from assay.grading import aggregate
from assay.model.case import EvalCase, Origin
from assay.model.plain import PlainLine
from assay.model.result import Outcome, recorded_pass
from assay.model.run import TrialRecord, entry_with, position_of
from assay.model.score import EvaluationScore, WrittenScore, full_marks
from assay.observations.own import PlainRecord, of_plain
from assay.ports import CaseStream
from assay.remembering import Remembered

_encode = msgspec.json.Encoder().encode
#: A text that no author writes, to find where in a fingerprint the text stands.
_BLANK = "\ue000blank\ue000"


class PlainAnswers(Protocol):
    """Recorded answers of which some are plain."""

    def plain(self, case_id: str) -> tuple[int, PlainRecord, bytes] | None:
        """The number of an answer, what it says, and its JSON; None when it is not plain."""
        ...


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """An evaluator that is a type and a free text, and nothing else."""

    type: str
    value: Annotated[str, msgspec.Meta(min_length=1)]


_decode = msgspec.json.Decoder(_Entry).decode


class _Part(msgspec.Struct, frozen=True):
    """An evaluator of a case: its check, what is written when that holds, and its fingerprint.

    `spec` may have another text; nothing else about it differs.
    """

    spec: Any
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
        self._parts = Remembered[bytes, _Part]()
        self._forms: dict[str, _Form | None] = {}
        self._taken = _Taken()

    def take(self, number: int, line: PlainLine) -> bool:
        """Take the case on a line of the file, if it can be."""
        parts = self._filled(line)
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

    def _filled(self, line: PlainLine) -> list[_Part]:
        """The evaluators of a case; none when one of them is no check of a text."""
        parts, known = [], self._parts
        for entry in line.evaluators:
            text = bytes(entry)
            part = known.get(text) or known.again(text)
            if part is None:
                part = self._part(text)
                if part is None:
                    return []
                known.meet(text, part)
            parts.append(part)
        return parts if len({part.spec.name for part in parts}) == len(parts) else []

    def _part(self, text: bytes) -> _Part | None:
        if (part := self._free(text)) is not None:
            return part
        spec: Any = self._reading.known.get(text) or self._reading.known.again(text)
        form = None if spec is None else _Form.of(spec)
        return None if form is None or spec.values is not None else form.filled(spec.value)

    def _free(self, text: bytes) -> _Part | None:
        """An entry with a free text and nothing else, of a type that was met before."""
        try:
            entry = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if entry.type not in self._forms:
            model = self._reading.models.get(entry.type)
            if model is None:
                return None
            self._forms[entry.type] = _Form.of(model)
        form = self._forms[entry.type]
        if form is None or not same_keys(entry, text):
            return None
        return form.filled(entry.value)


def _scores(parts: list[_Part], held: list[bool], response: str) -> list[EvaluationScore]:
    return [
        full_marks((part.spec.hit(part.text),))
        if holds
        else EvaluationScore(0.0, misses=(part.spec.text_check(part.text).miss(response),))
        for part, holds in zip(parts, held, strict=True)
    ]


def _case(line: PlainLine, parts: list[_Part], threshold: float | None, origin: Origin) -> EvalCase:
    """As much of a case as its result needs."""
    specs = tuple([part.spec for part in parts])
    more: Any = {"threshold": threshold, "locate": lambda steps: origin}
    return EvalCase(line.id, (), specs, _description(line), **more)


def _passed(line: PlainLine, parts: list[_Part], record: PlainRecord, place: str) -> bytes:
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


def _description(line: PlainLine) -> str:
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
        return _Part(spec, text, spec.holder(text), passed, before + _encode(text) + after)


def _checks_a_text(kind: type) -> bool:
    """Whether its `text_check` is all that it does: a class made from it may judge otherwise."""
    home = {name: cls for cls in reversed(kind.__mro__) for name in vars(cls)}
    return "text_check" in home and home["text_check"] is home.get("prepare")


def _around(data: bytes) -> tuple[bytes, bytes]:
    before, _, after = data.partition(_encode(_BLANK))
    return before, after
