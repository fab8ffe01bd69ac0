"""What a judge reports and what people would: the raw and the corrected pass rate."""

from __future__ import annotations

from assay.charts.intervals import across, rate_words
from assay.charts.markup import Chart, drawing, table, titled, words
from assay.charts.scale import of_rates, rate_axis
from assay.stats.estimates import Estimate

_WIDTH, _START, _TOP, _ROW = 440, 150, 6, 28


def corrected_rates(raw: Estimate, corrected: Estimate | None, judged: int, labels: int) -> Chart:
    """Both rates on one scale; `corrected` is None if the labels do not determine it."""
    counted = f"the judge passes, of {judged:,} answers"
    rows = [("judge", raw, f"{rate_words(raw)}: {counted}")]
    if corrected is not None:
        why = f"corrected by {labels:,} labels of people"
        rows.append(("corrected", corrected, f"{rate_words(corrected)}: {why}"))
    ends = [end for _, found, _ in rows for end in (found.low, found.high)]
    scale = of_rates(ends, _START, _WIDTH - 24)
    bottom = _TOP + _ROW * len(rows) + 2
    marks = list(rate_axis(scale, bottom))
    for index, (name, found, said) in enumerate(rows):
        y = _TOP + _ROW * (index + 0.5)
        cls = "" if index or corrected is None else "few"
        marks.append(titled(said, words(name, 0, y + 4), *across(scale, found, y, cls)))
    label = "Pass rate by the judge" + ("" if corrected is None else ", and corrected by labels")
    numbers = table(label, ("", "Pass rate (interval)"), ((n, rate_words(r)) for n, r, _ in rows))
    said = "; ".join(f"{name} {rate_words(found)}" for name, found, _ in rows)
    return Chart(drawing(f"{label}: {said}", _WIDTH, bottom + 26, marks), numbers)
