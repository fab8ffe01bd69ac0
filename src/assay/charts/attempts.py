"""Attempt strips: the repeats of flaky cases in order, a square each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from assay.charts.markup import (
    Chart,
    Html,
    box,
    drawing,
    line,
    linked,
    table,
    titled,
    words,
)
from assay.model.result import Outcome
from assay.text import count

#: More squares than this are counted, but not drawn.
MAX_SQUARES = 15
#: More cases than this are in the table only.
MAX_CASES = 40

_WIDTH, _NAME, _START, _SIZE, _STEP, _ROW = 540, 20, 240, 12, 15, 18
_CLASSES = {"passed": "better", "failed": "worse", "errored": "errored", "skipped": ""}


class Attempts(msgspec.Struct, frozen=True):
    """The outcomes of the attempts at a case, in order; `base` has those of the baseline."""

    name: str
    outcomes: Sequence[Outcome]
    base: Sequence[Outcome] = ()
    address: str = ""


def attempt_strips(cases: Sequence[Attempts], caption: str) -> Chart:
    """A strip for each case, with that of the baseline above it."""
    marks: list[Html] = []
    y = 4.0
    for case in cases[:MAX_CASES]:
        marks.append(_case(case, y))
        y += _ROW * (2 if case.base else 1) + 6
    if len(cases) > MAX_CASES:
        marks.append(
            words(f"and {len(cases) - MAX_CASES:,} more, in the table", 0, y + 12, "label")
        )
        y += 20
    rows = ((case.name, _passed(case.base), _passed(case.outcomes)) for case in cases)
    svg = drawing(f"{caption}: {count(len(cases), 'case')}", _WIDTH, max(y, _ROW), marks)
    return Chart(svg, table(caption, ("Case", "Baseline", "Attempts"), rows))


def _case(case: Attempts, y: float) -> Html:
    marks = [linked(words(case.name, 0, y + 12, room=_NAME), case.address)]
    said = f"{case.name}: {_passed(case.outcomes)}"
    if case.base:
        said += f"; baseline: {_passed(case.base)}"
        marks += _strip("base", case.base, y)
        y += _ROW
    marks += _strip("now" if case.base else "", case.outcomes, y)
    return titled(said, *marks)


def _strip(label: str, outcomes: Sequence[Outcome], y: float) -> Iterator[Html]:
    if label:
        yield words(label, _START - 12, y + 11, "label end")
    for index, outcome in enumerate(outcomes[:MAX_SQUARES]):
        yield from _square(outcome, _START + index * _STEP, y)
    judged = outcomes.count("passed") + outcomes.count("failed")
    yield words(f"{outcomes.count('passed')} of {judged}", _WIDTH, y + 11, "label end")


def _square(outcome: Outcome, x: float, y: float) -> Iterator[Html]:
    """Passed is full, failed has a cross, errored a bar: colour is not the only sign."""
    cls = _CLASSES[outcome]
    yield box(x, y, _SIZE, _SIZE, f"attempt {outcome}")
    near, far = 3.5, _SIZE - 3.5
    if outcome == "failed":
        yield line(x + near, y + near, x + far, y + far, f"sign {cls}")
        yield line(x + far, y + near, x + near, y + far, f"sign {cls}")
    elif outcome == "errored":
        yield line(x + _SIZE / 2, y + 2.5, x + _SIZE / 2 + 0.1, y + far, f"sign {cls}")


def _passed(outcomes: Sequence[Outcome]) -> str:
    """`2 of 3 passed`; those without a verdict are named too."""
    if not outcomes:
        return ""
    judged = outcomes.count("passed") + outcomes.count("failed")
    lost = len(outcomes) - judged
    return f"{outcomes.count('passed')} of {judged} passed" + (
        f", {lost} not judged" if lost else ""
    )
