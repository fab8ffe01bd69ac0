"""`xml`: JUnit XML, for build servers."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from msgspec.structs import replace

from assay.model.comparison import CaseRef
from assay.model.group_result import GroupResult
from assay.model.result import CaseResult
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult, Summary
from assay.redaction import cut
from assay.reporters.excerpts import excerpt
from assay.reporters.words import standings, verdict
from assay.text import printable

#: The longest `message` and the longest text of a failure, in characters.
MAX_MESSAGE, MAX_BODY = 1000, 8000


def write(run: RunResult, out: TextIO) -> None:
    """One testsuite per suite, one testcase per case."""
    _write([run], out)


def write_group(group: GroupResult, out: TextIO) -> None:
    """One testsuite per suite and target, called `suite [target]`.

    Build servers tell tests apart by their classname and name, so the classname has the target too.
    """
    _write([_with_target(run) for run in group.runs], out)


def _with_target(run: RunResult) -> RunResult:
    suites = (replace(suite, name=f"{suite.name} [{run.target}]") for suite in run.suites)
    return replace(run, suites=tuple(suites))


def _write(runs: Sequence[RunResult], out: TextIO) -> None:
    counts = _counts(*(run.summary for run in runs))
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f"<testsuites{_attributes(name='assay', **counts)}>\n")
    for run in runs:
        known = standings(run.comparison)
        for suite in run.suites:
            for line in _suite(suite, run, known):
                out.write(line + "\n")
    out.write("</testsuites>\n")


def _suite(suite: EvalSuiteResult, run: RunResult, known: Mapping[CaseRef, str]) -> Iterator[str]:
    counts = _counts(suite.summary)
    head = _attributes(name=suite.name, **counts, timestamp=suite.timestamp, file=suite.file)
    yield f"  <testsuite{head}>"
    yield "    <properties>"
    yield f"      <property{_attributes(name='verdict', value=verdict(run))}/>"
    yield f"      <property{_attributes(name='target', value=suite.target or run.target)}/>"
    yield f"      <property{_attributes(name='tier', value=suite.tier)}/>"
    yield "    </properties>"
    for case in suite.cases:
        yield from _case(suite, case, known)
    for element, texts in (("system-out", suite.notes), ("system-err", suite.staleness_warnings)):
        if texts:
            yield f"    <{element}>{_text(texts)}</{element}>"
    yield "  </testsuite>"


def _case(suite: EvalSuiteResult, case: CaseResult, known: Mapping[CaseRef, str]) -> Iterator[str]:
    file, line = case.source
    place = {"file": file or suite.file} | ({"line": str(line)} if line else {})
    time = _seconds(case.duration_ms)
    inside = [*_score(case), *_outcome(suite, case, known)]
    head = f"    <testcase{_attributes(name=case.id, classname=suite.name, time=time, **place)}"
    if not inside:
        yield f"{head}/>"
        return
    yield f"{head}>"
    yield from (f"      {line}" for line in inside)
    yield "    </testcase>"


def _score(case: CaseResult) -> Iterator[str]:
    if case.score is not None:
        score = _attributes(name="score", value=f"{case.score:.6g}")
        yield f"<properties><property{score}/></properties>"


def _outcome(
    suite: EvalSuiteResult, case: CaseResult, known: Mapping[CaseRef, str]
) -> Iterator[str]:
    """A `failure`, `error` or `skipped` element with the reasons; nothing if the case passed."""
    if case.outcome == "passed":
        return
    found = excerpt(suite, case, known)
    standing = [found.standing] if found.standing and case.outcome != "skipped" else []
    reasons = "; ".join((*standing, *found.reasons))
    message = _attributes(message=cut(reasons, MAX_MESSAGE, "both"))
    if case.outcome == "skipped":
        yield f"<skipped{message}/>"
        return
    element = "failure" if case.outcome == "failed" else "error"
    lines = [found.place, *standing, *found.reasons]
    lines += [f"note: {note}" for note in found.notes]
    for name, diff in found.diffs:
        lines += [f"trajectory of {name}:", *diff]
    yield f'<{element}{message} type="{case.outcome}">{_text(lines)}</{element}>'


def _counts(*found: Summary) -> dict[str, str]:
    return {
        "tests": str(sum(each.total_cases for each in found)),
        "failures": str(sum(each.failed for each in found)),
        "errors": str(sum(each.errored for each in found)),
        "skipped": str(sum(each.skipped for each in found)),
        "time": _seconds(sum(each.total_duration_ms for each in found)),
    }


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _attributes(**values: str) -> str:
    return "".join(f' {name}="{_quoted(value)}"' for name, value in values.items())


def _quoted(value: str) -> str:
    return html.escape(printable(value), quote=False).replace('"', "&quot;")


def _text(lines: Iterable[str]) -> str:
    """The lines as escaped text; `printable` escapes the characters that XML does not allow."""
    shown = [printable(cut(line, MAX_BODY)) for line in lines]
    return html.escape(cut("\n".join(shown), MAX_BODY), quote=False)
