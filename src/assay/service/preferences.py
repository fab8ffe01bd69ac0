"""The verb of preferences: a judge compares the answers of two or more recorded runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from assay import registry
from assay.blocking import wait_for
from assay.comparison.outcomes import find_run, names_file
from assay.comparison.preferences import preference_pairs, ranking
from assay.engine.preferring import AnswerJudge, Limits, Preferring
from assay.engine.redaction import RedactedJudge, SecretFreeCache
from assay.engine.run_targets import pool_for
from assay.errors import AssayError, UsageError
from assay.model.calibration import CalibrationState, JudgeUse
from assay.model.events import Listener, Notice
from assay.model.group_result import GroupResult
from assay.model.options import RunOptions
from assay.model.preference import Choice, JudgedPair, Preference, PreferenceJudge
from assay.model.run import RunRecord
from assay.model.run_result import RunResult
from assay.model.target import TargetSpec
from assay.ports import Resources, Store, Target
from assay.redaction import Redactor, redacted, redacting
from assay.results import calibrations
from assay.service.answer_pairs import AnsweredCases, AnsweredRun, PairToJudge
from assay.service.costs import cost_of_calls
from assay.service.groups import find_group
from assay.service.options import options_of
from assay.service.preference_labels import PairLabels
from assay.service.project import project
from assay.service.result import Run
from assay.service.runs import AnyTarget, separate
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.settings import Settings
from assay.stats.calibration import Confusion
from assay.targets.pool.target_pool import TargetPool
from assay.text import count, money

#: The name and the type of the judge of preferences, where judges have an evaluator's.
EVALUATOR = "preference"
NO_CRITERIA = (
    "no criteria say which answers are better: set preference: {criteria: ...} in assay.yaml"
)
#: How many pairs are read to estimate the cost.
_SAMPLED = 20
#: The choice between identical answers, about which no judge is asked.
_IDENTICAL = Choice("tie", False, ("", ""))


class PreferenceRequest(msgspec.Struct, frozen=True):
    """What a caller requests; without criteria, those of the configuration count."""

    criteria: str = ""
    judge: AnyTarget | None = None
    options: dict[str, Any] = {}
    listen: Listener = lambda event: None
    #: A file with the choices of people, to calibrate the judge with.
    labels: str | os.PathLike[str] | None = None
    #: How much of the budget is spent already.
    spent_usd: float = 0.0
    #: Asked before each pair: has the caller cancelled?
    stop: Callable[[], bool] = lambda: False


def prefer(
    *runs: str | os.PathLike[str] | RunResult | GroupResult,
    criteria: str = "",
    judge: AnyTarget | None = None,
    store: str | None = None,
    budget_usd: float | None = None,
    cache: bool | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> Preference:
    """Let a judge decide which answers are better, in both orders; answers of recorded runs.

    `runs` are two or more results of `run`, or what names one, or one group. `criteria` say what
    makes an answer better, and `judge` is a target or a name; assay.yaml has the defaults. Every
    pair takes two calls of the judge. `labels` is a file with the choices of people, by which the
    judge is calibrated. docs/preference.md explains the result.
    """
    given = {"budget_usd": budget_usd, "cache": cache}
    options = {name: value for name, value in given.items() if value is not None}
    request = PreferenceRequest(criteria, judge, options, labels=labels)
    with ExitStack() as stack:
        return prefer_runs(answered_runs(runs, stack, store), request)


def prefer_runs(runs: Sequence[AnsweredRun], request: PreferenceRequest) -> Preference:
    """Compare the answers of runs that are open."""

    async def judged() -> Preference:
        async with separate(request.judge) as judge:
            return await preference_of(runs, request, None if isinstance(judge, str) else judge)

    return wait_for(judged)


def answered_runs(
    runs: Sequence[str | os.PathLike[str] | RunResult | GroupResult],
    stack: ExitStack,
    url: str | None,
) -> list[AnsweredRun]:
    """The runs with their stores, which stay open as long as the stack; a group means its runs."""
    opened: list[Store] = []

    def store() -> Store:
        if not opened:
            opened.append(open_store(project(), url))
            stack.callback(opened[0].close)
        return opened[0]

    found: list[tuple[str, RunRecord, Store]] = []
    each = (part.runs if isinstance(part, GroupResult) else (part,) for part in runs)
    for run in chain.from_iterable(each):
        if isinstance(run, Run):
            found.append((run.id, run.record, run.store))
            continue
        reference = run.id if isinstance(run, RunResult) else os.fspath(run)
        if names_file(reference):
            message = f"{reference!r} is a file: answers are compared of recorded runs"
            raise UsageError(f"{message}; give an id, the name of a baseline, or `latest`")
        if (group := find_group(reference, store())) is not None:
            found += [(record.id, record, store()) for record in group.runs]
        else:
            found.append((reference, find_run(reference, store()), store()))
    return _named(found)


def _named(found: Sequence[tuple[str, RunRecord, Store]]) -> list[AnsweredRun]:
    """The runs by the names of their targets, or as they were given if those are the same."""
    if len({record.id for _, record, _ in found}) < len(found):
        raise UsageError("a run is given twice: its answers are the same")
    by_target = len({record.target for _, record, _ in found}) == len(found)
    return [
        AnsweredRun(record.target if by_target else given, record, store)
        for given, record, store in found
    ]


async def preference_of(
    runs: Sequence[AnsweredRun], request: PreferenceRequest, judge: Target | None
) -> Preference:
    """Compare the answers of runs; a `judge` that is an object overrides that of the options."""
    settings = project()
    settings.prepend_to_sys_path()
    session = _Session(runs, request, settings)
    redactor = Redactor(secrets_of(settings))
    async with pool_for(settings, session.options, judge) as pool:
        with redacting(lambda: redactor):
            cache = SecretFreeCache(runs[0].store, redactor) if session.options.cache else None
            judging = RedactedJudge(pool.judge_of_preferences(), redactor)
            resources = Resources(lambda target, model: judging, cache=cache)
            named = cast("Any", registry.evaluators.get("llm_judge"))
            asked: AnswerJudge = named.comparing(resources, session.criteria)
            spec = None if judge is not None else pool.judge_spec()
            request.listen(Notice(session.announcement(asked, spec)))
            return await session.run(asked, pool.workers, _judged_by_themselves(runs, spec, pool))


def _judged_by_themselves(
    runs: Sequence[AnsweredRun], judge: TargetSpec | None, pool: TargetPool
) -> list[str]:
    """The targets whose model is also the judge."""
    if judge is None:
        return []
    found = []
    for run in runs:
        with suppress(AssayError):  # the configuration may have changed since
            if _model(pool.spec(run.record.target)) == _model(judge):
                found.append(run.name)
    return found


def _model(spec: TargetSpec) -> tuple[str, object]:
    """The provider and the model; the settings of a target without a model."""
    return spec.provider, getattr(spec, "model", spec.identity)


class _Session:
    """The answers of some runs, and a judge that is about to compare them."""

    def __init__(
        self, runs: Sequence[AnsweredRun], request: PreferenceRequest, settings: Settings
    ) -> None:
        if len(runs) < 2:
            raise UsageError("a preference needs two runs or more")
        self._runs, self._settings = runs, settings
        self.criteria, self.options = _criteria_and_options(request, settings)
        names = [run.name for run in runs]
        self._labels = None if request.labels is None else PairLabels(Path(request.labels), names)
        self._listen = request.listen
        self._limits = Limits(self.options.budget_usd, request.spent_usd, request.stop)
        self._cases = AnsweredCases(runs)
        self._pairs = self._cases.pairs()
        self._to_ask = [pair for pair in self._pairs if not pair.identical]
        if not self._pairs:
            message = "the runs have no case that two of them judged and that has not changed"
            raise UsageError(f"{message}: there is nothing to compare")

    def announcement(self, judge: AnswerJudge, spec: TargetSpec | None) -> str:
        """What is about to be asked, and what it costs if that can be known."""
        same = len(self._pairs) - len(self._to_ask)
        known = f"; {same:,} more are identical" if same else ""
        if not self._to_ask:
            return f"the answers of all {count(same, 'pair')} are identical: nothing to ask"
        pairs = count(len(self._to_ask), "pair of answers", "pairs of answers")
        calls = count(2 * len(self._to_ask), "call")
        words = f"the judge {judge.name!r} compares {pairs} in both orders: {calls}"
        expected = None if spec is None else self._expected_cost(judge, spec)
        cost = "" if expected is None else f", about {money(expected)}"
        return f"{words}{cost}{known}"

    def _expected_cost(self, judge: AnswerJudge, spec: TargetSpec) -> float | None:
        """The cost of all calls, by the length of some; None if the price is not known."""
        some = self._to_ask[:: max(len(self._to_ask) // _SAMPLED, 1)]
        lengths = [judge.length(self._cases.answers(pair)) for pair in some]
        return cost_of_calls(spec, lengths, 2 * len(self._to_ask))

    async def run(self, judge: AnswerJudge, workers: int, own: Sequence[str]) -> Preference:
        """Ask, and sum up; the judge is the model of the targets called `own`."""
        preferring = Preferring(judge, self._cases.answers, self._limits, self._report)
        asked = await preferring.run(self._to_ask, workers)
        names = [run.name for run in self._runs]
        cases = tuple(
            self._judged_pair(pair, _IDENTICAL if pair.identical else asked[pair])
            for pair in self._pairs
            if pair.identical or pair in asked
        )
        use = JudgeUse(judge.id, EVALUATOR, EVALUATOR, judge.name)
        labelled = None if self._labels is None else self._labels.compared(cases)
        if self._labels is not None and labelled is not None and labelled.decided:
            root = self._settings.root
            calibrations.save(root, self._labels.calibration(use, cases, self._about, root))
        state, table = self._calibration(use)
        spending, clusters = judge.spending, self._cases.clusters
        return Preference(
            redacted(self.criteria),
            PreferenceJudge(
                use.judge, use.id, spending.calls, spending.cached, spending.cost_usd, state
            ),
            tuple(names),
            preference_pairs(names, cases, clusters, table),
            ranking(names, cases, clusters),
            cases,
            labelled,
            unasked := len(self._pairs) - len(cases),
            tuple(self._notes(judge, preferring.stopped if unasked else "", own)),
        )

    def _report(self, words: str) -> None:
        self._listen(Notice(words))

    @property
    def _about(self) -> str:
        """The runs whose answers are labelled."""
        return " ".join(run.record.id for run in self._runs)

    def _calibration(self, use: JudgeUse) -> tuple[CalibrationState, Confusion | None]:
        """Whether the judge is calibrated, and the labels if they are about these two runs."""
        state, known = calibrations.state_of(use, calibrations.read(self._settings.root))
        mine = known is not None and state == "current" and known.run_id == self._about
        return state, known.table if known is not None and mine else None

    def _judged_pair(self, pair: PairToJudge, choice: Choice | str) -> JudgedPair:
        a, b = self._runs[pair.a].name, self._runs[pair.b].name
        if isinstance(choice, str):
            return JudgedPair(*pair.ref, a, b, None, error=choice)
        answers = self._cases.answers(pair)
        one, other = len(answers.a), len(answers.b)
        longer: Literal["a", "b", ""] = "" if one == other else "a" if one > other else "b"
        return JudgedPair(
            *(*pair.ref, a, b, choice.better, choice.flipped),
            reasons=() if pair.identical else choice.reasons,
            longer=longer,
            identical=pair.identical,
        )

    def _notes(self, judge: AnswerJudge, stopped: str, own: Sequence[str]) -> Iterator[str]:
        if stopped:
            yield f"not all answers were compared: {stopped}"
        for name in own:
            yield f"the judge is the model of {name}: models tend to prefer their own answers"
        left_out = self._cases.left_out
        if left_out.unanswered:
            pairs = count(left_out.unanswered, "pair of answers", "pairs of answers")
            yield f"{pairs} not compared: one of the runs did not judge the case"
        if left_out.changed:
            pairs = count(left_out.changed, "pair of answers", "pairs of answers")
            yield f"{pairs} not compared: the case changed between the runs"
        spending = judge.spending
        if self.options.budget_usd is not None and spending.calls and spending.cost_usd is None:
            yield "the budget does not cover all calls: the judge does not report what they cost"
        for run in self._runs:
            if run.record.partial:
                yield f"the run of {run.name} is partial: {run.record.partial}"


def _criteria_and_options(request: PreferenceRequest, settings: Settings) -> tuple[str, RunOptions]:
    """The criteria and the options, as given or else from the configuration."""
    defaults = settings.config.preference
    criteria = request.criteria or (defaults.criteria if defaults else "")
    if not criteria.strip():
        raise UsageError(f"{NO_CRITERIA}, or give --preference CRITERIA")
    options = dict(request.options)
    if isinstance(request.judge, str):
        options["judge"] = request.judge
    elif request.judge is None and defaults is not None and defaults.judge is not None:
        options.setdefault("judge", defaults.judge)
    return criteria, options_of(options, settings)
