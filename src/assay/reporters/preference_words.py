"""A preference in words, the same on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from assay.charts.intervals import rate_words
from assay.model.preference import Preference, PreferenceLabels, PreferencePair
from assay.reporters.comparison_words import p_value
from assay.text import count, money, percent

#: From this share of flipped cases on, the judge goes by the order too often to be of much use.
MANY_FLIPS = 0.3
#: How many errors of the judge are shown.
MAX_ERRORS = 3
RANKING_HEADS = ("", "target", "wins against an average target")
PAIR_HEADS = ("pair", "cases", "wins", "losses", "ties", "win rate")


def result_of(pair: PreferencePair) -> str:
    """Which target of a pair is preferred, and how sure that is."""
    if pair.win_rate is None:
        return "no case was judged"
    rate = f"{pair.b} wins {rate_words(pair.win_rate)} of {count(pair.judged, 'case')}"
    known = "" if pair.p_value is None else f", {p_value(pair.p_value)}"
    if pair.adjusted not in (None, pair.p_value):
        known += f" ({p_value(pair.adjusted or 0.0)} allowing for all pairs)"
    verdict = "that may be chance" if pair.better is None else f"{pair.better} is preferred"
    return f"{rate}{known}; {verdict}"


def details_of(pair: PreferencePair) -> Iterator[str]:
    """The counts behind a win rate, and what speaks against the judge."""
    if pair.judged:
        wins = f"{count(pair.wins, 'win')}, {count(pair.losses, 'loss', 'losses')}"
        same = f", {pair.identical:,} of them identical answers" if pair.identical else ""
        yield f"{wins}, {count(pair.ties, 'tie')}{same}"
    if pair.flip_rate is not None:
        asked = count(pair.judged - pair.identical, "case")
        share = f"{pair.flipped:,} of {asked} ({percent(pair.flip_rate)}), which are ties"
        yield f"the order decided in {share if pair.flipped else f'none of {asked}'}"
    decided = pair.longer_won + pair.shorter_won
    if decided:
        yield f"the longer answer won {pair.longer_won:,} of {decided:,}"
    if (pair.flip_rate or 0) > MANY_FLIPS:
        yield "the judge often goes by the order: another judge or clearer criteria may help"
    if pair.corrected is not None:
        words = f"{rate_words(pair.corrected)} of the cases with a winner"
        yield f"as people would judge: {pair.b} wins {words}"
    if pair.errored:
        yield f"{count(pair.errored, 'case')} not judged, as the judge gave no usable reply"


def judge_of(found: Preference) -> str:
    """The judge, what it did, and what it cost."""
    judge = found.judge
    parts = [judge.name, count(judge.calls, "call")]
    if judge.cached:
        parts.append(f"{count(judge.cached, 'reply', 'replies')} from the cache")
    if judge.cost_usd is not None:
        parts.append(money(judge.cost_usd))
    elif judge.calls:
        parts.append("cost unknown")
    states = {
        "current": "calibrated",
        "stale": "changed since it was calibrated",
        "none": "not calibrated",
    }
    return ", ".join([*parts, states[judge.calibration]])


def agreement_of(labels: PreferenceLabels) -> str:
    """How far the judge agrees with people."""
    words = f"agrees with {rate_words(labels.agreement)} of {count(labels.labels, 'label')}"
    if labels.kappa is not None:
        low, high = labels.kappa.low, labels.kappa.high
        words += f"; kappa {labels.kappa.estimate:.2f} ({low:.2f} to {high:.2f})"
        words += f" where both name a winner ({labels.decided:,})"
    if labels.unknown:
        words += f"; {count(labels.unknown, 'label is', 'labels are')} about no judged case"
    return words


def ranks_of(found: Preference) -> list[tuple[str, str, str]]:
    """The ranking as rows: place, target, and share of wins."""
    return [
        (
            f"{place}.",
            ranked.target,
            "not known" if ranked.strength is None else rate_words(ranked.strength),
        )
        for place, ranked in enumerate(found.ranking, 1)
    ]


def first_errors(found: Preference) -> list[str]:
    """The first cases that the judge could not judge, with the reason."""
    errored = [case for case in found.cases if case.error]
    return [f"{case.suite}: {case.id}: {case.error}" for case in errored[:MAX_ERRORS]]
