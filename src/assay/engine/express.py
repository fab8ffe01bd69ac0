"""The express lane: a fast path for recorded answers to plain cases that only check their text.

The cases of a large suite differ mostly in their texts, and most of them pass. For those no objects
are made for the case, its evaluators and their scores: the checks are run, and the JSON is written
directly. For a case that fails, only what its result needs is built. All other cases take the
usual path. Both give the same results, byte for byte.
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
from assay.model.score import EvaluationScore, EvaluatorEntry, full_marks
from assay.observations.own import PlainRecord, of_plain
from assay.ports import CaseStream

_encode = msgspec.json.Encoder().encode
#: A placeholder that occurs in no eval file, to find the place of the text in a fingerprint.
_BLANK = "\ue000blank\ue000"
#: The type of an entry, with its name if it has one.
_Kind = str | tuple[str, str]
#: How many kinds of entries are cached.
MAX_KINDS = 1000


class PlainAnswers(Protocol):
    """Recorded answers, some of which are plain."""

    def plain(self, case_id: str) -> tuple[int, PlainRecord, bytes] | None:
        """The number of an answer, its content, and its JSON; None if it is not plain."""
        ...


class _Check(msgspec.Struct, frozen=True):
    """An evaluator of a case: its check, the JSON of a passing score, and its fingerprint.

    `spec` may have a different text, but is otherwise the evaluator.
    """

    spec: Any
    name: str
    text: str
    holds: Callable[[str], bool]
    passed: msgspec.Raw
    fingerprint: bytes


class _Batch(msgspec.Struct):
    """Graded trials: `facts` has position, id, outcome, score, duration, cost and key of each.

    `documents` has two items a trial, the JSON of its result and of its observation. `used` has
    the numbers of the answers, `responses` their texts.
    """

    facts: list[tuple[int, str, Outcome, float | None, float, float | None, str]] = []
    documents: list[bytes] = []
    used: list[int] = []
    responses: list[str] = []


class Express:
    """Grades those lines of a stream that are plain."""

    def __init__(
        self, suite: int, stream: CaseStream, trials: Trials, answers: PlainAnswers
    ) -> None:
        self._suite, self._trials, self._answers = suite, trials, answers
        self._file, self._name = trials.files[suite], stream.name
        self._reading, self._threshold = stream.reading, stream.inherited.threshold
        #: What is known about entries of a kind; None if they are not checks of a text.
        self._templates: dict[_Kind, _Template | None] = {}
        #: The last check of each kind.
        self._last: dict[_Kind, _Check] = {}
        self._batch = _Batch()

    def take(self, number: int, line: TextLine) -> bool:
        """Grade the case on a line of the file; False if it must take the usual path."""
        checks = self._checks(line.evaluators)
        found = self._answers.plain(line.id) if checks else None
        if found is None:
            return False
        used, record, observation = found
        response = record.response
        try:
            held = [check.holds(response) for check in checks]
        except TimeoutError:
            return False
        threshold = self._threshold if line.threshold is UNSET else line.threshold
        if False in held:
            scores = _scores(checks, held, response)
            case = _case(line, checks, threshold, Origin(self._name, number, 1))
            result = aggregate(case, of_plain(record, observation), scores)
            outcome, score, document = result.outcome, result.score, result.recorded(0)
        else:
            place = f"{self._name}:{number}"
            outcome, score, document = "passed", 1.0, _passed(line, checks, record, place)
        key = comparability.plain_key(line, threshold, [check.fingerprint for check in checks])
        position, spent = position_of(self._suite, number - 1), record.duration_ms or 0.0
        batch = self._batch
        batch.facts.append((position, line.id, outcome, score, spent, record.cost_usd, key))
        batch.documents += (document, observation)
        batch.used.append(used)
        batch.responses.append(response)
        return True

    def trials(self) -> tuple[list[TrialRecord], list[int], dict[int, bytes]]:
        """The trials graded since the last call, and the numbers of the answers they used.

        Also their entries for the result file, by position, unless something was redacted.
        """
        batch, self._batch = self._batch, _Batch()
        documents = self._trials.redact.all_encoded(batch.documents)
        rows = zip(batch.facts, documents[::2], documents[1::2], strict=True)
        run, file = self._trials.run_id, self._file
        trials = [
            TrialRecord(  # positional: keywords take measurably longer
                run,
                position,
                0,  # repeat
                file,
                case_id,
                outcome,
                score,
                spent,
                cost,
                None,  # judge_cost_usd
                key,
                False,  # critical
                None,  # cluster
                1.0,  # min_pass_rate
                0,  # skipped_assertions
                False,  # confirms
                True,  # final
                result,
                observation,
            )
            for (
                position,
                case_id,
                outcome,
                score,
                spent,
                cost,
                key,
            ), result, observation in rows
        ]
        entries = {}
        if documents is batch.documents:
            for trial, response in zip(trials, batch.responses, strict=True):
                entries[trial.position] = entry_with(trial.result, _encode(response))
        return trials, batch.used, entries

    def _checks(self, entries: list[TextEntry]) -> list[_Check]:
        """The checks of a case; empty if one of its evaluators is not a check of a text.

        Entries of a kind mostly have either all the same text or each its own, so the last check
        of a kind is a sufficient cache.
        """
        checks, last = [], self._last
        for entry in entries:
            kind = entry.type if entry.name is UNSET else (entry.type, entry.name)
            check = last.get(kind)
            if check is None or check.text != entry.value:
                check = self._check(kind, entry)
                if check is None:
                    return []
                last[kind] = check
            checks.append(check)
        return checks if len({check.name for check in checks}) == len(checks) else []

    def _check(self, kind: _Kind, entry: TextEntry) -> _Check | None:
        if kind in self._templates:
            template = self._templates[kind]
        elif kind not in self._last and len(self._templates) + len(self._last) >= MAX_KINDS:
            return None  # names seem to be unique to cases: caching them would gain nothing
        else:
            spec = self._parse(entry)
            if spec is None:
                return None
            template = _Template.of(spec)
            if template is None or spec.free_text:  # else each text has to be validated
                self._templates[kind] = template
        return None if template is None else template.filled(entry.value)

    def _parse(self, entry: TextEntry) -> Any:
        """The evaluator of an entry; None if it is invalid or there is a warning about it."""
        reading = self._reading
        specs = at_once([_encode(entry)], lambda _: msgspec.to_builtins(entry), reading)
        if reading.notes:
            reading.notes.clear()  # the usual path reports them, with their places
            return None
        return specs[0] if specs else None


def _scores(checks: list[_Check], held: list[bool], response: str) -> list[EvaluationScore]:
    return [
        full_marks((check.spec.hit(check.text),))
        if holds
        else EvaluationScore(0.0, misses=(check.spec.text_check(check.text).miss(response),))
        for check, holds in zip(checks, held, strict=True)
    ]


def _case(
    line: TextLine, checks: list[_Check], threshold: float | None, origin: Origin
) -> EvalCase:
    """As much of a case as its result needs."""
    specs = tuple([check.spec for check in checks])
    more: Any = {"threshold": threshold, "locate": lambda steps: origin}
    return EvalCase(line.id, (), specs, _description(line), **more)


def _passed(line: TextLine, checks: list[_Check], record: PlainRecord, place: str) -> bytes:
    """The JSON of the result of a case all of whose checks hold."""
    tools = record.tool_calls
    return recorded_pass(
        line.id,
        _description(line),
        record.duration_ms or 0.0,
        [check.passed for check in checks],
        None if tools is None else [call.name for call in tools],
        record.usage,
        record.cost_usd,
        place,
    )


def _description(line: TextLine) -> str:
    return "" if line.description is UNSET else line.description


class _Template(msgspec.Struct, frozen=True):
    """An evaluator with a blank for its text: the JSON before and after the blank."""

    spec: Any
    passed: tuple[bytes, bytes]
    fingerprint: tuple[bytes, bytes]

    @classmethod
    def of(cls, spec: Any) -> _Template | None:
        """The template of a built-in check of a text that has a weight and is not required."""
        if not _checks_a_text(type(spec)):
            return None
        if spec.required is not False or not spec.weight or spec.free_text not in ("", "value"):
            return None
        score = EvaluatorEntry(spec.name, spec.type, spec.weight, 1.0, "pass", (_BLANK,), ())
        blank = spec.model_copy(update={"value": _BLANK})
        return cls(spec, _around_blank(_encode(score)), _around_blank(blank.fingerprint()))

    def filled(self, text: str) -> _Check:
        spec, (before, after) = self.spec, self.passed
        passed = msgspec.Raw(before + _encode(spec.hit(text)) + after)
        before, after = self.fingerprint
        fingerprint = before + _encode(text) + after
        return _Check(spec, spec.name, text, spec.holder(text), passed, fingerprint)


def _checks_a_text(kind: type) -> bool:
    """Is `text_check` all that the class does? Not if a subclass has its own `prepare`."""
    home = {name: cls for cls in reversed(kind.__mro__) for name in vars(cls)}
    return "text_check" in home and home["text_check"] is home.get("prepare")


def _around_blank(data: bytes) -> tuple[bytes, bytes]:
    before, _, after = data.partition(_encode(_BLANK))
    return before, after
