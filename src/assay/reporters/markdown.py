"""`md`: Markdown for the summary of a GitHub job, and for people.

What others wrote stands in `<code>` or `<pre>`, where nobody is mentioned and nothing is linked,
and every sign that means something to Markdown or HTML is a character reference.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TextIO

from assay.model.comparison import CaseRef
from assay.model.run_result import RunResult
from assay.model.suite_result import Summary
from assay.reporters.excerpts import Excerpt, gather
from assay.reporters.words import against, changes, count, facts, rate, verdict, warnings
from assay.terminal import safe

#: How many entries a list has, and how many suites the table.
MAX_LISTED, MAX_SUITES = 20, 200
#: GitHub refuses a summary of more than 1 MiB as a whole.
MAX_CHARACTERS = 600_000

#: The signs of ASCII that Markdown, HTML or GitHub may take for more than themselves.
_SIGNS = re.compile(r"[!-$&-*:<>?@\[-`{-~]|(?<=www)\.", re.IGNORECASE)

#: The facts that are not in our own words.
_FOREIGN = ("Run", "Target", "Results", "Flaky", "Judge")


def write(run: RunResult, out: TextIO) -> None:
    """Title with the verdict, suites, what changed, failures to unfold."""
    found, summary, room = gather(run), run.summary, MAX_CHARACTERS
    parts = chain(_head(run), _suites(run), _comparison(run))
    room -= _put(out, parts)
    room -= _put(out, _cases(found.failed, summary.failed, room))
    room -= _put(out, _cases(found.errored, summary.errored, room))
    _put(out, chain(_skipped(found.skipped), _warnings(run)))


def _put(out: TextIO, lines: Iterable[str]) -> int:
    """Write the lines; how many characters they were."""
    written = 0
    for line in lines:
        out.write(f"{line}\n")
        written += len(line) + 1
    return written


def code(text: str, limit: int = 300) -> str:
    """What a model or user wrote, inside a line."""
    escaped = _SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", safe(text, limit))
    return f"<code>{escaped}</code>"


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """The first of some lines as a list, and how many there are beside."""
    yield from (f"- {line}" for line in lines[:MAX_LISTED])
    if len(lines) > MAX_LISTED:
        yield f"- and {len(lines) - MAX_LISTED:,} more"
    if lines:
        yield ""


def _head(run: RunResult) -> Iterator[str]:
    yield f"## Assay: {verdict(run)}"
    yield ""
    yield from _listed([code(reason) for reason in run.reasons])


def _suites(run: RunResult) -> Iterator[str]:
    yield "| Suite | Tier | Passed | Failed | Errored | Skipped | Pass rate |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for suite in run.suites[:MAX_SUITES]:
        yield _row(code(suite.name), suite.tier, suite.summary, rate(suite))
    if len(run.suites) > MAX_SUITES:
        yield f"| and {count(len(run.suites) - MAX_SUITES, 'more suite')} | | | | | | |"
    if len(run.suites) > 1:
        yield _row("**All**", "", run.summary, "")
    yield ""
    for label, text in facts(run):
        yield f"- {label}: {code(text) if label in _FOREIGN else text}"
    yield ""


def _row(name: str, tier: str, summary: Summary, rate: str) -> str:
    counts = (summary.passed, summary.failed, summary.errored, summary.skipped)
    numbers = (f"{number:,}" for number in counts)
    return "| " + " | ".join((name, tier, *numbers, rate)) + " |"


def _comparison(run: RunResult) -> Iterator[str]:
    comparison = run.comparison
    if comparison is None:
        return
    decision = comparison.decision.replace("_", " ")
    yield f"### Against {code(against(run, comparison))}: {decision}"
    yield ""
    if comparison.explanation:
        yield code(comparison.explanation, 1000)
        yield ""
    gate = [f"gate failed: {code(failure)}" for failure in comparison.gate_failures]
    if not gate and comparison.decision != "not_comparable":
        gate = [f"gate {comparison.gate}: passed"]
    yield from _listed(gate)
    yield from _listed([f"{title}: {_refs(refs)}" for title, refs in changes(comparison)])


def _refs(refs: Sequence[CaseRef]) -> str:
    more = f" and {len(refs) - MAX_LISTED:,} more" if len(refs) > MAX_LISTED else ""
    return ", ".join(code(str(ref)) for ref in refs[:MAX_LISTED]) + more


def _cases(listed: Sequence[Excerpt], total: int, room: int) -> Iterator[str]:
    """The cases that there is room for, and how many there are beside."""
    if not listed:
        return
    outcome, told = listed[0].outcome, 0
    yield f"### {count(total, 'case')} {outcome}"
    yield ""
    for case in listed:
        text = "\n".join(_case(case))
        room -= len(text)
        if room < 0:
            break
        yield text
        told += 1
    if told < total:
        yield f"and {count(total - told, f'more {outcome} case')}"
        yield ""


def _case(case: Excerpt) -> Iterator[str]:
    """Unfolds to the reasons. No text in `<pre>` is Markdown, blank lines or not."""
    place = f" {code(case.place)}" if case.place else ""
    yield f"<details><summary>{code(case.id)}{place}</summary>"
    yield ""
    yield "<pre>"
    for line in _lines(case):
        yield html.escape(line, quote=False)
    yield "</pre>"
    yield "</details>"
    yield ""


def _lines(case: Excerpt) -> Iterator[str]:
    if case.description:
        yield safe(case.description)
    if case.again:
        yield case.again
    yield from (f"- {safe(reason)}" for reason in case.reasons)
    for name, drawn in case.diffs:
        yield f"trajectory of {safe(name)}:"
        yield from (f"  {line}" for line in drawn)


def _skipped(skipped: dict[str, int]) -> Iterator[str]:
    if skipped:
        yield f"### {count(sum(skipped.values()), 'case')} skipped"
        yield ""
    # There are few different reasons: the excerpts see to that.
    yield from (f"- {number:,}: {code(reason)}" for reason, number in skipped.items())
    if skipped:
        yield ""


def _warnings(run: RunResult) -> Iterator[str]:
    told = [f"{label}: {code(text)}" for label, text in warnings(run)]
    if told:
        yield "### Warnings and notes"
        yield ""
        yield from _listed(told)
