"""Notes on how the answers of a run were obtained: from the cache, or after retries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.result import decode_trial
from assay.model.run import TrialRecord
from assay.text import count


def answer_notes(trials: Iterable[TrialRecord]) -> Iterator[str]:
    """How many answers came from the cache and from when, and how many requests were repeated."""
    asked = cached = retried = retries = 0
    times: set[str] = set()
    for trial in trials:
        if trial.outcome == "skipped":
            continue
        for attempt in decode_trial(trial.result).details.trials:
            asked += 1
            cached += attempt.cached
            retried += attempt.retries > 0
            retries += attempt.retries
            if attempt.answered_at:
                times.add(attempt.answered_at)
    if cached:
        came = f"{cached:,} of {count(asked, 'answer')} came from the cache{_when(times)}"
        yield f"{came}; run with --no-cache to ask the target again"
    if retries:
        often = count(retries, "retry", "retries")
        yield f"{often} after errors of the target, in {retried:,} of {count(asked, 'trial')}"


def _when(times: set[str]) -> str:
    """`, given 2026-01-30 09:12 to 2026-01-31 17:05 UTC`; empty if no time is known."""
    if not times:
        return ""
    first, last = (moment[:16].replace("T", " ") for moment in (min(times), max(times)))
    return f", given {first} UTC" if first == last else f", given {first} to {last} UTC"
