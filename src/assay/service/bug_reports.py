"""Turns a failed result of a recorded run into a regression case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from assay import registry
from assay.comparison.outcomes import find_run
from assay.errors import NotInStore, UsageError, nearest
from assay.model import tokens
from assay.model.case import EvalCase, EvalSuite
from assay.model.expect import Expect, ExpectBase, merged
from assay.model.names import same_name
from assay.model.observation import Observation
from assay.model.result import Outcome, decode_trial
from assay.model.run import RunRecord, only
from assay.model.trials import by_case, outcome_of, repeats_of
from assay.observations.reading import read_json
from assay.ports import Store
from assay.service import regressions
from assay.service.eval_files import load
from assay.service.evaluation import evaluate
from assay.service.project import project
from assay.service.store import store_to_read
from assay.settings import Settings, shown_path
from assay.suites.ledger import SUFFIX, Bug
from assay.suites.staleness import eval_file_hash


class BugReport(msgspec.Struct, frozen=True):
    """A bug report. `source` is RUN/CASE; `force` accepts a result that passed or is outdated.

    `contains`, `params` (each `tool.path=value`) and `tools_called` are expected in addition to
    what the case expects.
    """

    source: str
    bug_ref: str
    description: str = ""
    tool: str = ""
    file: str = ""
    contains: tuple[str, ...] = ()
    tools_called: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    force: bool = False


class _Recorded(msgspec.Struct, frozen=True):
    """A recorded answer: the evaluators that it failed, and the first message about that."""

    observation: Observation
    failed: frozenset[str]
    reason: str


class _Found(msgspec.Struct, frozen=True):
    """A case of a recorded run."""

    run: RunRecord
    suite: str
    case_id: str
    position: int
    outcome: Outcome


def regression_from_run(
    report: BugReport, *, store: str | None = None, today: date | None = None
) -> tuple[Path, str]:
    """Add a locked regression case for a bug; returns its file and its id."""
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        return regression_of(report, settings, opened, today)


def regression_of(
    report: BugReport, settings: Settings, store: Store, today: date | None = None
) -> tuple[Path, str]:
    """The same with a store that stays open."""
    if not report.bug_ref.strip():
        raise UsageError("the bug reference is empty: name the issue or the commit of the fix")
    found = _find(report.source, store)
    recorded = _recorded(found, store)
    if found.outcome != "failed" and not report.force:
        was = "was skipped" if found.outcome == "skipped" else found.outcome
        hint = "only a failed result shows a bug; --force adds it all the same"
        raise UsageError(f"{found.case_id} {was} in the run {found.run.id}: {hint}")
    suite, case = _load_case(found, settings, force=report.force)
    expect = _expected(case, report, recorded)
    folder, tool = _location(report, suite, expect)
    description = report.description or case.description or recorded.reason or case.id
    bug = Bug(_prompt(case), expect, description, report.bug_ref)

    def verify(block: Expect) -> None:
        if found.outcome != "errored":  # only with --force: there is no answer to check
            _check_fails(case, block, recorded)

    return regressions.add(folder, tool, bug, today or date.today(), verify)


def _find(source: str, store: Store) -> _Found:
    """The case that RUN/CASE names. Both parts may contain slashes."""
    steps = source.split("/")
    for index in range(1, len(steps)):
        try:
            run = find_run("/".join(steps[:index]), store)
        except NotInStore:
            continue
        return _case_of(run, "/".join(steps[index:]), store)
    if len(steps) == 1:
        raise UsageError(f"{source!r} does not name a result: write RUN/CASE, as latest/{source}")
    raise NotInStore("run or baseline", steps[0], [*store.baselines(), "latest"])


def _case_of(run: RunRecord, wanted: str, store: Store) -> _Found:
    names = {suite.file: suite.name for suite in run.suites}
    found: list[_Found] = []
    near: list[str] = []
    for trials in by_case(store.facts(run.id)):
        first = trials[0]
        suite, identity = first.suite, first.case_id
        known = (identity, f"{suite}:{identity}", f"{names.get(suite)}:{identity}")
        if any(same_name(wanted, name) for name in known):
            outcome = outcome_of(repeats_of(trials))
            found.append(_Found(run, suite, identity, first.position, outcome))
        elif len(near) < _MAX_NAMES:
            near.append(identity)
    if not found:
        hint = nearest(wanted, near)
        raise UsageError(f"the run {run.id} has no case {wanted!r}" + (f"; {hint}" if hint else ""))
    if len(found) > 1:
        ways = ", ".join(f"{each.suite}:{each.case_id}" for each in found)
        raise UsageError(f"more than one suite has a case {wanted!r}: write one of {ways}")
    return found[0]


#: A misspelt id is compared with at most this many.
_MAX_NAMES = 10_000


def _recorded(found: _Found, store: Store) -> _Recorded:
    """The answer of the first failed trial, or of the first one if none failed."""
    trials = list(store.trials(found.run.id, positions=only(found.position)))
    trial = next((each for each in trials if each.outcome == "failed"), trials[0])
    details = decode_trial(trial.result).details
    misses = [miss for entry in details.evaluators for miss in entry.misses]
    reasons = [*misses, *details.failures, ""] if trial.outcome == "failed" else [""]
    failed = frozenset(entry.name for entry in details.evaluators if entry.verdict != "pass")
    return _Recorded(read_json(trial.observation), failed, reasons[0])


def _load_case(found: _Found, settings: Settings, *, force: bool) -> tuple[EvalSuite, EvalCase]:
    """Load the case from its file; a UsageError if the file changed since the run."""
    file = settings.root / found.suite
    header = next(suite for suite in found.run.suites if suite.file == found.suite)
    if not force and header.metadata.eval_file_hash != eval_file_hash(file, settings):
        changed = f"{shown_path(file)} changed since the run {found.run.id}"
        raise UsageError(f"{changed}: run it again; --force takes the case as it is now")
    for suite in load(file):
        for case in suite.cases:
            if case.id == found.case_id:
                return suite, case
    raise UsageError(f"{shown_path(file)} has no case {found.case_id!r} any more")


def _prompt(case: EvalCase) -> str:
    messages = case.input_messages
    if len(messages) != 1 or messages[0].role != "user":
        found = f"the input of {case.id} is {len(messages)} messages"
        raise UsageError(f"{found}; a regression case has the text of one question")
    content = messages[0].content
    if isinstance(content, tuple) and any(part.type != "text" for part in content):
        raise UsageError(f"the input of {case.id} has files; a regression case has text alone")
    return messages[0].text


_HOW = (
    "state what the answer should have been: --contains TEXT, --param TOOL.PATH=VALUE"
    " or --tool-called NAME"
)


def _expected(case: EvalCase, report: BugReport, recorded: _Recorded) -> dict[str, Any]:
    """The `expect` blocks of the case, the other checks that failed, and what the report adds."""
    blocks = [
        spec.as_expect(case.expected, recorded.observation)
        for spec in sorted(case.evaluators, key=lambda spec: not isinstance(spec, ExpectBase))
        if spec.name in recorded.failed or isinstance(spec, ExpectBase)
    ]
    expect = merged(blocks)
    lasting = {key: kept for key, value in expect.items() if (kept := _lasting(value)) or not value}
    if lasting != expect and not report.contains:
        problem = "expects values of a snapshot, which a regression case outlives"
        raise UsageError(f"{case.id} {problem}: state others with --contains TEXT")
    params = _params(report.params, recorded.observation, lasting)
    expect = merged([lasting, {"responseContains": [*report.contains], "toolParams": params}])
    if report.tools_called:
        expect.pop("toolsAcceptable", None)
        expect["toolsCalled"] = list(report.tools_called)
    expect = {key: value for key, value in expect.items() if value != [] or key in lasting}
    if not expect and not report.tools_called:
        raise UsageError(
            f"nothing can be taken over from {case.id}{_failed(case, recorded)}\n{_HOW}"
        )
    return expect


def _failed(case: EvalCase, recorded: _Recorded) -> str:
    """The failed checks, which an `expect` block cannot express, or only in part."""
    failed = [spec for spec in case.evaluators if spec.name in recorded.failed]
    names = [s.name if s.name == s.type else f"{s.name} ({s.type})" for s in failed]
    return f"; an 'expect' block cannot express what failed: {', '.join(names)}" if names else ""


def _params(
    given: Iterable[str], seen: Observation, expect: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Each `TOOL.PATH=VALUE` as an assertion; the value is JSON, or else text.

    A tool's name may have dots: the longest one that was called or is expected counts.
    """
    tools = {call.tool for call in seen.tool_calls or ()} | _tools_in(expect)
    params = []
    for text in given:
        left, equals, written = text.partition("=")
        known = [tool for tool in tools if left.startswith(f"{tool}.")]
        tool = max(known, key=len, default=left.partition(".")[0])
        path = left[len(tool) + 1 :]
        if not (tool and path and equals):
            found = f"--param {text!r} is not of the form TOOL.PATH=VALUE"
            raise UsageError(f"{found}, such as refund.amount=42.5")
        try:
            value = msgspec.json.decode(written)
        except msgspec.DecodeError:
            value = written
        params.append({"tool": tool, "paramName": path, "assertion": "equals", "value": value})
    return params


def _tools_in(expect: Mapping[str, Any]) -> set[str]:
    """The tools that must be called."""
    return {*expect.get("toolsCalled", ()), *(p["tool"] for p in expect.get("toolParams", ()))}


def _check_fails(case: EvalCase, block: Expect, recorded: _Recorded) -> None:
    """Raise UsageError unless the new case fails on the recorded answer."""
    cls = registry.evaluators.get("expect")
    given = block.model_dump(mode="json", exclude_unset=True)
    spec = cls.model_validate({"type": "expect", "name": "expect", **given})
    probe = case.replace(evaluators=(spec,), skip=None, threshold=None)
    result = evaluate(probe, recorded.observation)
    if result.outcome == "failed":
        return
    if result.outcome == "errored":
        reason = "; ".join(result.failures)
        raise UsageError(f"the new case cannot be judged on the recorded answer: {reason}")
    message = "the new case would pass on the recorded answer, so it would not have caught the bug"
    raise UsageError(f"{message}{_failed(case, recorded)}\n{_HOW}")


def _lasting(value: Any) -> Any:
    """The expected value without those entries of lists that hold a snapshot token."""
    if not isinstance(value, list):
        return value
    entries = [item for item in value if isinstance(item, list) or not _has_snapshot_token(item)]
    kept = [_lasting(item) for item in entries]
    return [item for item in kept if item != [] or item in value]  # keep lists that were empty


def _has_snapshot_token(item: Any) -> bool:
    written = msgspec.json.encode(item).decode()
    return any(token.source == "snapshot" for token in tokens.find(written))


def _location(report: BugReport, suite: EvalSuite, expect: dict[str, Any]) -> tuple[Path, str]:
    """The folder of the regression file, and the tool that it is about."""
    if report.file:
        file = Path(report.file)
        tool = file.name.removesuffix(SUFFIX)
        if tool == file.name or report.tool not in ("", tool):
            name = f"{report.tool or '<tool>'}{SUFFIX}"
            raise UsageError(f"{shown_path(file)}: the file of the case is called {name}")
        return file.absolute().parent, tool
    named = _tools_in(expect)
    tool = report.tool or suite.tool_name or (named.pop() if len(named) == 1 else "")
    if not tool:
        raise UsageError("which tool is it about? name it with --tool")
    return Path(suite.file).absolute().parent, tool
