"""A group in words: which targets are best, how sure that is, and on which cases they differ.

They are the same on a terminal, on a page and in every report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from assay.charts.forest import RateRow
from assay.charts.intervals import difference_words, rate_words
from assay.model.group import GroupCell, GroupComparison, GroupPair, GroupTarget
from assay.model.run_result import RunResult
from assay.reporters.comparison_words import p_value
from assay.reporters.words import VERDICTS, opening, tone_of, verdict
from assay.text import count, duration, money

#: How many targets a sentence names.
MAX_NAMED = 4
#: What the best set is, for those who read it for the first time.
HOW_BEST = (
    "The best set has the targets that no other one is significantly better than, in paired tests"
    " that allow for the number of pairs."
)
#: Why an interval and a p-value of the same pair may disagree.
HOW_PAIRS = (
    "An interval is that of its pair alone, while p allows for all pairs: in small suites the"
    " interval may exclude 0 although p is large."
)
TARGET_HEADS = (
    *("Target", "Pass rate", "Passed", "Judged"),
    *("Cost", "Judges", "p50", "p95", "Best set"),
)
#: The columns that are not numbers.
TEXT_HEADS = ("Target", "Pass rate", "Best set")
PAIR_HEADS = ("Pair", "Cases", "Difference in points", "p, all pairs", "Better")


class GroupStanding(NamedTuple):
    """Which targets are best: in one word, with its tone, and in a sentence."""

    word: str
    tone: str
    sentence: str


class TargetWords(msgspec.Struct, frozen=True):
    """A target of a group as a row; what is not known is empty. `cells` are by `TARGET_HEADS`."""

    run_id: str
    best: bool
    cells: tuple[str, ...]

    @property
    def target(self) -> str:
        return self.cells[0]


class RunWords(NamedTuple):
    """How the run of a target ended by its own rules: against its baseline, if it has one."""

    target: str
    run_id: str
    word: str
    tone: str
    sentence: str


def standing(found: GroupComparison) -> GroupStanding:
    """Which targets are best. Targets in the best set are not equal: they cannot be told apart."""
    best, judged = found.best, [target for target in found.targets if target.judged]
    if not judged:
        return GroupStanding("Cannot tell", "unclear", "no case was judged")
    if len(judged) == 1:
        return GroupStanding("Cannot tell", "unclear", f"only {judged[0].target} has judged cases")
    if len(best) == len(judged):
        return GroupStanding("Cannot tell", "unclear", _none_better(len(judged)))
    if not best:  # each pair has cases of its own
        sentence = "each target is significantly worse than another one, over different cases"
        return GroupStanding("Cannot tell", "unclear", sentence)
    names = named([target.target for target in best])
    if len(best) > 1:
        return GroupStanding("Best", "plain", f"{names}, which cannot be told apart")
    return GroupStanding("Best", "better", f"{names}, {_how_much_better(found, best[0])}")


def _none_better(targets: int) -> str:
    if targets == 2:
        return "neither target is significantly better than the other"
    return f"none of the {targets:,} targets is significantly better than another"


def _how_much_better(found: GroupComparison, best: GroupTarget) -> str:
    """A target may be alone in the best set without having beaten each of the others itself."""
    others = [target for target in found.targets if target.judged and target is not best]
    beaten = {pair.a if pair.better == pair.b else pair.b for pair in _won_by(found, best.target)}
    if any(target.target not in beaten for target in others):
        return "the only target that no other one is significantly better than"
    if len(others) == 1:
        return f"significantly better than {others[0].target}"
    return f"significantly better than each of the other {len(others):,}"


def _won_by(found: GroupComparison, target: str) -> list[GroupPair]:
    return [pair for pair in found.pairs if pair.better == target]


def named(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first, and how many more there are."""
    shown = list(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        shown.append(f"{len(names) - MAX_NAMED:,} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def headline(found: GroupComparison) -> str:
    """The standing in one line."""
    known = standing(found)
    return f"{known.word}: {known.sentence}"


def counts_of(found: GroupComparison) -> str:
    """`200 cases, 196 of them judged for every target; the targets differ on 34`."""
    if not found.cases:
        return "no case was asked"
    few = f"{found.compared:,} of them judged"
    if found.cases == 1:
        few = "judged" if found.compared else "not judged"
    judged = f"{count(found.cases, 'case')}, {few} for every target"
    return f"{judged}; the targets differ on {found.differing_count:,}"


def target_rows(found: GroupComparison) -> list[TargetWords]:
    """A row for each target, with its numbers and their denominators."""
    return [
        TargetWords(target.run_id, target.best, _cells(found, target)) for target in found.targets
    ]


def _cells(found: GroupComparison, target: GroupTarget) -> tuple[str, ...]:
    return (
        target.target,
        rate_words(target.rate),
        f"{target.passed:,} of {target.judged:,}",
        f"{target.judged:,} of {max(found.cases - target.skipped, 0):,}",
        "" if target.cost_usd is None else money(target.cost_usd),
        "" if target.judge_cost_usd is None else money(target.judge_cost_usd),
        "" if target.p50_ms is None else duration(target.p50_ms),
        "" if target.p95_ms is None else duration(target.p95_ms),
        _place(found, target),
    )


def _place(found: GroupComparison, target: GroupTarget) -> str:
    """Whether a target is in the best set, and if not, why."""
    if not target.judged:
        return "not judged"
    if target.best:
        return "yes"
    pairs = (pair for pair in found.pairs if target.target in (pair.a, pair.b))
    better = [pair.better for pair in pairs if pair.better not in (None, target.target)]
    return f"no, worse than {named([name for name in better if name is not None])}"


def used_columns(rows: Sequence[TargetWords]) -> list[int]:
    """The columns that say something about any target: not all have costs and times."""
    return [
        column for column, _ in enumerate(TARGET_HEADS) if any(row.cells[column] for row in rows)
    ]


def rate_rows(found: GroupComparison, addresses: Sequence[str] = ()) -> list[RateRow]:
    """The rates of the targets for a forest; `addresses` are where their rows lead."""
    to = addresses or [""] * len(found.targets)
    return [
        RateRow(each.target, each.passed, each.judged, each.rate, address=address)
        for each, address in zip(found.targets, to, strict=True)
    ]


def pair_words(pair: GroupPair, pairs: int) -> str:
    """`claude against gpt: -8.5 points (-13 to -4.1) in 200 cases, p = 0.004; gpt is better`."""
    names = f"{pair.b} against {pair.a}"
    if pair.difference is None or pair.adjusted is None:
        return f"{names}: no case to compare"
    numbers = f"{difference_words(pair.difference)} in {count(pair.pairs, 'case')}"
    allowing = f" allowing for all {pairs:,} pairs" if pairs > 1 else ""
    better = "that may be chance" if pair.better is None else f"{pair.better} is better"
    return f"{names}: {numbers}, {p_value(pair.adjusted)}{allowing}; {better}"


def significant(found: GroupComparison) -> list[str]:
    """The pairs of which one target is better, in words."""
    return [pair_words(pair, len(found.pairs)) for pair in found.pairs if pair.better is not None]


def pair_cells(pair: GroupPair) -> tuple[str, ...]:
    """A pair as a row, by `PAIR_HEADS`."""
    known = pair.difference is not None and pair.adjusted is not None
    return (
        f"{pair.b} against {pair.a}",
        f"{pair.pairs:,}",
        difference_words(pair.difference).replace(" points", ""),
        p_value(pair.adjusted or 0.0) if known else "",
        pair.better or ("may be chance" if known else "nothing to compare"),
    )


def cell_words(cell: GroupCell | None) -> str:
    """What a case did for a target: `passed`, `failed`, `3 of 5 passed`, `errored`, `not asked`."""
    if cell is None:
        return "not asked"
    if cell.judged > 1:
        return f"{cell.passes:,} of {cell.judged:,} passed"
    return cell.outcome


def cell_kind(cell: GroupCell | None) -> str:
    """The outcome by which a cell is coloured; a case that both passed and failed is flaky."""
    if cell is None:
        return "skipped"
    return "flaky" if 0 < cell.passes < cell.judged else cell.outcome


def differing_note(found: GroupComparison, shown: int) -> str:
    """Which cases a list has, and of how many."""
    total = found.differing_count
    if shown < total:
        cases = "case" if shown == 1 else f"{shown:,} cases"
        return f"the {cases} on which the targets differ most, of {total:,} on which they differ"
    return f"{count(total, 'case')} on which the targets differ"


def run_words(run: RunResult) -> RunWords:
    """How a run ended, in the words of its own report."""
    word = verdict(run)
    return RunWords(run.target, run.id, word, tone_of(word), opening(run)[0])


def facts(found: GroupComparison) -> Iterator[tuple[str, str]]:
    """What there is to say of the whole group, each with its label."""
    yield "Group", found.group_id
    yield "Targets", f"{len(found.targets):,}"
    yield "Cases", counts_of(found)
    known = [target.cost_usd for target in found.targets if target.cost_usd is not None]
    judges = [t.judge_cost_usd for t in found.targets if t.judge_cost_usd is not None]
    costs = ((known, count(len(known), "target")), (judges, "judges"))
    if spent := ", ".join(f"{money(sum(each))} for {whose}" for each, whose in costs if each):
        yield "Cost", spent


def outcome_of_group(exit_code: int, runs: int) -> str:
    """The exit code of a group, which is that of its worst run."""
    word = VERDICTS.get(exit_code, "passed" if exit_code == 0 else f"exit code {exit_code}")
    return f"{word} (exit code {exit_code}), the worst of {count(runs, 'run')}"
