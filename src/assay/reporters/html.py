"""`html`: a report in one file, which opens from disk without a network.

Verdict, charts, groups of failures and the first failures are plain HTML. A script adds the list
of all cases, with details of as many as fit. The policy in the file allows that script and the
style sheet by their hashes, and nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from hashlib import sha256
from typing import Any, TextIO

from assay.model.comparison import CaseRef
from assay.model.group_result import GroupResult
from assay.model.json_encoding import as_json
from assay.model.run_result import RunResult
from assay.reporters import group_html
from assay.reporters.data_blocks import ChunkSpool, block, gzipped
from assay.reporters.report_charts import ChartPanel, charts
from assay.reporters.report_data import ReportData
from assay.reporters.report_rows import CHANGES, COLUMNS, OUTCOMES
from assay.reporters.words import (
    asked_suites,
    baseline_of,
    changes,
    facts,
    moved,
    opening,
    rate,
    tone_of,
    verdict,
    warnings,
)
from assay.text import count
from assay.version import __version__
from assay.web.environment import draw
from assay.web.modules import bundle, style

#: The largest file, in megabytes, unless the rows of all cases need more.
HTML_SIZE = 20.0
_MEGABYTE = 1_000_000
#: The limits of lists on the page.
MAX_GROUPS, MAX_LISTED, MAX_WARNINGS = 8, 20, 50
#: Characters that are kept free for what is only known at the end.
_SPARE = 4096
_MARK = "<!-- data -->"


def write(run: RunResult, out: TextIO, html_size: float = HTML_SIZE) -> None:
    """The page, then the data of its list; `html_size` is the limit in megabytes."""
    limit = int(html_size * _MEGABYTE)
    with ExitStack() as stack:
        data = ReportData(run, limit, stack)
        drawn = list(charts(run, data.rows))
        room = limit - len(_page(run, data, drawn, "").encode()) - data.rows.close() - _SPARE
        room -= len(_meta(run, data, (0, 0)))
        main, taken = data.main.fitting(max(room, 0))
        rest, _ = data.rest.fitting(max(room - taken, 0))
        head, script, tail = _page(run, data, drawn, _left_out(data, main, rest)).split(_MARK)
        out.write(head)
        out.write(_meta(run, data, (main, rest)))
        data.rows.write(out)
        out.write(script)  # it need not wait for the details, which are most of the file
        data.main.write(out, main)
        data.rest.write(out, rest)
        out.write(tail)


def write_group(group: GroupResult, out: TextIO, html_size: float = HTML_SIZE) -> None:
    """Several targets in one page, with the answers of each where they differ."""
    group_html.write_group(group, out, html_size)


def _page(run: RunResult, data: ReportData, drawn: Sequence[ChartPanel], contents: str) -> str:
    """The whole page, with marks in place of the data; `contents` says what the file has."""
    from markupsafe import Markup

    groups, failures = data.groups.largest(), data.plain
    total = run.summary.failed + run.summary.errored
    shown = f"the first {len(failures):,} of {total:,}" if total > len(failures) else ""
    warned = list(warnings(run))
    sentence, said = opening(run)
    script = bundle("report.js")
    return draw(
        "report.html",
        {
            "run": run,
            "version": __version__,
            "title": sentence,
            "word": verdict(run).capitalize(),
            "tone": tone_of(verdict(run)),
            "sentence": sentence,
            "said": said,
            "pairs": list(facts(run)),
            "charts": drawn,
            "groups": groups[:MAX_GROUPS],
            "more_groups": max(len(groups) - MAX_GROUPS, 0),
            "groups_note": f"{count(total, 'case')}, {count(len(groups), 'reason')}",
            "plain": failures,
            "plain_note": shown,
            "suites": [(suite, rate(suite)) for suite in asked_suites(run)],
            "base": "" if run.comparison is None else baseline_of(run, run.comparison),
            "moved": "" if run.comparison is None else moved(run.comparison),
            "changes": list(_changes(run)),
            "warnings": warned[:MAX_WARNINGS],
            "contents": contents,
            "data": Markup(_MARK),
            "style": Markup(style()),
            "script": Markup(script),
            "policy": _policy(),
        },
    )


def _changes(run: RunResult) -> Iterator[tuple[str, list[CaseRef], int]]:
    """What changed against the baseline: a heading, the first cases, how many more there are."""
    for heading, refs in changes(run.comparison) if run.comparison is not None else ():
        yield heading, list(refs[:MAX_LISTED]), max(len(refs) - MAX_LISTED, 0)


def _left_out(data: ReportData, main: int, rest: int) -> str:
    """What the file has, and what it leaves out."""
    missing = _missing(data, main, rest)
    text = f"{count(data.rows.count, 'case')}"
    if not any(missing):
        return f"{text}, all with details"
    kinds = ("that did not just pass", "that passed")
    left = (f"{number:,} {kind}" for number, kind in zip(missing, kinds, strict=True) if number)
    return f"{text}; details left out to stay within the size: {' and '.join(left)}"


def _missing(data: ReportData, main: int, rest: int) -> tuple[int, int]:
    """How many cases have no details in the file: those that did not just pass, and the others."""
    return (
        data.main_cases - data.main.records_in(main),
        data.rest_cases - data.rest.records_in(rest),
    )


def _meta(run: RunResult, data: ReportData, chunks: tuple[int, int]) -> str:
    """The block with what the script needs to know besides the rows."""
    main, rest = _missing(data, *chunks)
    rows = data.rows
    counts = {"all": rows.count, "flaky": rows.flaky} | rows.outcomes | rows.changes
    found: dict[str, Any] = {
        "runId": run.id,
        "count": rows.count,
        "outcomes": OUTCOMES,
        "changes": CHANGES,
        "columns": COLUMNS,
        "kinds": list(rows.kinds()),
        "groups": data.groups.largest(),
        "counts": counts,
        "chunk": ChunkSpool.CHUNK,
        "chunks": {"main": chunks[0], "rest": chunks[1]},
        "left": {"main": main, "rest": rest},
        "folded": case_foldings(),
        "base": "" if run.comparison is None else baseline_of(run, run.comparison),
    }
    return block("meta", gzipped(as_json(found)))


@cache
def case_foldings() -> dict[str, str]:
    """Characters whose case folding is not their lower case, which scripts do not know."""
    characters = (chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000)
    return {c: c.casefold() for c in characters if c.lower() == c != c.casefold()}


@cache
def _policy() -> str:
    return (
        f"default-src 'none'; script-src '{_hash(bundle('report.js'))}'; "
        f"style-src '{_hash(style())}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
