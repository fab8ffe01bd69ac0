"""Turns a failed result of a recorded run into a regression case."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from assay.comparison.outcomes import find_run
from assay.errors import NotInStore, UsageError, nearest
from assay.model import tokens
from assay.model.case import EvalCase, Suite
from assay.model.expect import Expect, ExpectBase
from assay.model.names import same_name
from assay.model.result import Outcome
from assay.model.run import RunRecord, only
from assay.ports import Store
from assay.results.trials import by_case, outcome_of, repeats_of
from assay.service import regressions
from assay.service.eval_files import load
from assay.service.project import project
from assay.service.store import store_to_read
from assay.settings import Settings, shown_path
from assay.suites.ledger import SUFFIX, Bug
from assay.suites.staleness import file_hash


class Report(msgspec.Struct, frozen=True):
    """A bug report. `source` is RUN/CASE; `force` accepts a result that passed or is outdated.

    `contains` and `tools_called` are expected in addition to what the case expects.
    """

    source: str
    bug_ref: str
    description: str = ""
    tool: str = ""
    file: str = ""
    contains: tuple[str, ...] = ()
    tools_called: tuple[str, ...] = ()
    force: bool = False


class _Found(msgspec.Struct, frozen=True):
    """A case of a recorded run."""

    run: RunRecord
    suite: str
    case_id: str
    position: int
    outcome: Outcome


def capture(
    report: Report, *, store: str | None = None, today: date | None = None
) -> tuple[Path, str]:
    """Add a locked regression case for a bug; returns its file and its id."""
    if not report.bug_ref.strip():
        raise UsageError("the bug reference is empty: name the issue or the commit of the fix")
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        found = _find(report.source, opened)
        reason = _reason(found, opened)
    if found.outcome != "failed" and not report.force:
        was = "was skipped" if found.outcome == "skipped" else found.outcome
        hint = "only a failed result shows a bug; --force adds it all the same"
        raise UsageError(f"{found.case_id} {was} in the run {found.run.id}: {hint}")
    suite, case = _load_case(found, settings, force=report.force)
    expect = _expected(case, report)
    folder, tool = _location(report, suite, expect)
    description = report.description or case.description or reason or case.id
    bug = Bug(_prompt(case), expect, description, report.bug_ref)
    return regressions.add(folder, tool, bug, today or date.today())


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


def _reason(found: _Found, store: Store) -> str:
    """Why the case failed: the first message of its first failed trial."""
    failed: tuple[Outcome, ...] = ("failed",)
    for trial in store.trials(found.run.id, failed, only(found.position)):
        details: dict[str, Any] = msgspec.json.decode(trial.result)["details"]
        misses = [miss for entry in details["evaluators"] for miss in entry.get("misses", ())]
        return str([*misses, *details["failures"], ""][0])
    return ""


def _load_case(found: _Found, settings: Settings, *, force: bool) -> tuple[Suite, EvalCase]:
    """Load the case from its file; a UsageError if the file changed since the run."""
    file = settings.root / found.suite
    header = next(suite for suite in found.run.suites if suite.file == found.suite)
    if not force and header.metadata.get("evalFileHash") != file_hash(file):
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


def _expected(case: EvalCase, report: Report) -> dict[str, Any]:
    """What the case expects in its `expect` block, with what the report adds."""
    expect: dict[str, Any] = {}
    for spec in case.evaluators:
        if isinstance(spec, ExpectBase):
            keys = {*spec.asserted(), "toolsCalledMode"} & Expect.model_fields.keys()
            expect |= spec.model_dump(mode="json", include=keys, exclude_defaults=True)
    lasting = {key: kept for key, value in expect.items() if (kept := _lasting(value)) or not value}
    if lasting != expect and not report.contains:
        problem = "expects values of a snapshot, which a regression case outlives"
        raise UsageError(f"{case.id} {problem}; say what should come in their place, by --contains")
    expect = lasting
    if report.contains:
        known = expect.get("responseContains", [])
        expect["responseContains"] = list(dict.fromkeys([*known, *report.contains]))
    if report.tools_called:
        expect.pop("toolsAcceptable", None)
        expect["toolsCalled"] = list(report.tools_called)
    if not expect:
        hint = "say what should come, by --contains or --tool-called"
        raise UsageError(
            f"{case.id} has no 'expect' block that a regression case could take; {hint}"
        )
    return expect


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


def _location(report: Report, suite: Suite, expect: dict[str, Any]) -> tuple[Path, str]:
    """The folder of the regression file, and the tool that it is about."""
    if report.file:
        file = Path(report.file)
        tool = file.name.removesuffix(SUFFIX)
        if tool == file.name or report.tool not in ("", tool):
            name = f"{report.tool or '<tool>'}{SUFFIX}"
            raise UsageError(f"{shown_path(file)}: the file of the case is called {name}")
        return file.absolute().parent, tool
    called = expect.get("toolsCalled") or []
    tool = report.tool or suite.tool_name or (called[0] if len(called) == 1 else "")
    if not tool:
        raise UsageError("which tool is it about? name it with --tool")
    return Path(suite.file).absolute().parent, tool
