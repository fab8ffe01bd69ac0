"""Plan: which cases of which suites are asked, how often, and in which order.

Every case has a position, made of the number of its suite and its index there, so that neither
filters nor other suites change it. The plan needs a few bytes per case; cases are read when their
turn comes. Streamed suites are not part of it: see `engine/stream.py`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from random import Random
from typing import NamedTuple

from assay.model.case import EvalCase, EvalSuite, Tier
from assay.model.case_filter import parse_filter, row_of_case, suite_names
from assay.model.evaluator import EvaluatorSpec
from assay.model.names import normal_name
from assay.model.options import RunOptions
from assay.model.run import place_of, position_of

#: The tiers in the order in which they are asked. Rubric cases wait for all others.
TIERS: tuple[Tier, ...] = ("golden", "labeled", "regression", "suite", "rubric")
#: So many neighbouring trials are shuffled together. Trials that are asked one after the other are
#: then near each other in the file and in the store, which fit into their caches.
SHUFFLED_TOGETHER = 512
#: The lower bits of a trial's number are the repeat, the others the position.
_REPEAT_BITS = 16


class PlannedCase(NamedTuple):
    """A selected case: its position, its suite, and how often it is asked."""

    position: int
    suite: int
    case: EvalCase
    repeats: int


class Trial(NamedTuple):
    """One repeat of a planned case, counted from 0."""

    planned: PlannedCase
    repeat: int


class FinishedTrials:
    """A set of finished trials in eight bytes each; takes (position, repeat) in ascending order."""

    __slots__ = ("_numbers",)

    def __init__(self, trials: Iterable[tuple[int, int]] = ()) -> None:
        self._numbers = array("Q", (_number(*trial) for trial in trials))

    def between(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The position and repeat of the trials from one position up to another."""
        first, last = (bisect_left(self._numbers, _number(at, 0)) for at in (start, stop))
        return [_trial(number) for number in self._numbers[first:last]]

    def has_number(self, number: int) -> bool:
        index = bisect_left(self._numbers, number)
        return index < len(self._numbers) and self._numbers[index] == number


def _number(position: int, repeat: int) -> int:
    return position << _REPEAT_BITS | repeat


def _trial(number: int) -> tuple[int, int]:
    return number >> _REPEAT_BITS, number & (1 << _REPEAT_BITS) - 1


def _shuffled(numbers: array[int], seed: int | None) -> Iterator[int]:
    """The trials block by block, with the blocks and each of them shuffled."""
    random = Random(seed)
    starts = list(range(0, len(numbers), SHUFFLED_TOGETHER))
    random.shuffle(starts)
    for start in starts:
        block = numbers[start : start + SHUFFLED_TOGETHER]
        random.shuffle(block)
        yield from block


class DefaultEvaluators:
    """Default evaluators that replace those chosen by loaders; none if it is empty."""

    def __init__(self, specs: tuple[EvaluatorSpec, ...]) -> None:
        self._specs = specs
        self._required = tuple(
            spec if spec.required else spec.model_copy(update={"required": True}) for spec in specs
        )

    def __bool__(self) -> bool:
        return bool(self._specs)

    def applied(self, case: EvalCase) -> EvalCase:
        """The case with these evaluators in place of its default ones."""
        if not self._specs:
            return case
        if case.has_default_evaluators:
            return case.replace(evaluators=self._specs)
        if not case.added_defaults:
            return case
        own = case.evaluators[: -case.added_defaults]
        return case.replace(evaluators=(*own, *self._renamed(own)), added_defaults=len(self._specs))

    def _renamed(self, own: Sequence[EvaluatorSpec]) -> Iterator[EvaluatorSpec]:
        """The evaluators as required ones, under names that the author's do not have."""
        taken = {spec.name for spec in own}
        for spec in self._required:
            name, number = spec.name, 2
            while name in taken:
                name, number = f"{spec.name}_{number}", number + 1
            taken.add(name)
            yield spec if name == spec.name else spec.model_copy(update={"name": name})


def _any_case(suite: int, case: EvalCase) -> bool:
    return True


class Plan:
    """The selected cases of some suites; `defaults` are for cases that name no evaluator.

    `wanted` is one more filter: it gets the number of a suite and a case of it. `select` reads the
    cases; before it is called, none is known.
    """

    def __init__(
        self,
        suites: Sequence[EvalSuite],
        options: RunOptions,
        defaults: tuple[EvaluatorSpec, ...] = (),
        wanted: Callable[[int, EvalCase], bool] | None = None,
    ) -> None:
        self.suites, self.options = tuple(suites), options
        self._defaults = DefaultEvaluators(defaults)
        self._wanted = wanted or _any_case
        # With `of`, the filter is about the results of a run, and `wanted` has looked them up.
        self._filter = parse_filter("" if options.of else options.select or "")
        self._suite_names = [suite_names(suite.name, suite.file) for suite in self.suites]
        self._positions, self._repeats = array("Q"), array("L")
        self.selected = [0] * len(self.suites)

    def select(self, look: Callable[[PlannedCase], None] = lambda planned: None) -> Plan:
        """Find the selected cases, and call `look` with each: large files are read only once."""
        for planned in self:
            look(planned)
            self._positions.append(planned.position)
            self._repeats.append(planned.repeats)
            self.selected[planned.suite] += 1
        return self

    @property
    def streams(self) -> list[int]:
        """The numbers of the streamed suites of the selected tiers."""
        return [i for i, s in enumerate(self.suites) if s.streamed and self._has_tier(s)]

    @property
    def workers(self) -> int | None:
        """How many trials run at once: by the options, else by the suites, else None."""
        suggested = [suite.workers for suite in self.suites if suite.workers]
        return self.options.workers or max(suggested, default=None)

    @property
    def planned(self) -> int:
        """How many trials the plan has."""
        return sum(self._repeats)

    def __len__(self) -> int:
        """How many cases are selected."""
        return len(self._positions)

    def __iter__(self) -> Iterator[PlannedCase]:
        """The selected cases in file order."""
        options, found = self.options, 0
        shard, shards = map(int, (options.shard or "1/1").split("/"))
        for index, planned in enumerate(self._matching()):
            if index % shards == shard - 1:
                yield planned
                found += 1
                if found == options.limit:
                    return

    def at(self, position: int) -> PlannedCase:
        suite, index = place_of(position)
        return self.planned_case(position, suite, self.suites[suite].cases[index])

    def trials(
        self, tiers: Collection[Tier], done: Iterable[tuple[int, int]], *, shuffled: bool
    ) -> Iterator[Trial]:
        """The remaining trials of some tiers, tier by tier in the order of TIERS.

        `done` has (position, repeat) in ascending order. Within a tier, trials are in file order,
        or shuffled by the seed: then the order of a file cannot favour any case.
        """
        if not self._positions:
            return  # do not read `done`: it may have all trials of a stream
        finished = FinishedTrials(done)
        if self.options.stop_when is not None:
            yield from self._remaining(self._by_case(tiers), finished)
            return
        for tier in TIERS:
            if tier not in tiers:
                continue
            asked = self._of_tiers([tier])
            numbers = array("Q", (_number(at, repeat) for at, n in asked for repeat in range(n)))
            order = _shuffled(numbers, self.options.seed) if shuffled else numbers
            yield from self._remaining(order, finished)

    def order(self, tiers: Collection[Tier]) -> array[int]:
        """The positions of the cases of some tiers, all together, shuffled by the seed."""
        found = array("Q", (position for position, _ in self._of_tiers(tiers)))
        Random(self.options.seed).shuffle(found)
        return found

    def repeats_of(self, position: int) -> int:
        """How often the selected case at a position is asked."""
        return self._repeats[bisect_left(self._positions, position)]

    def _of_tiers(self, tiers: Collection[Tier]) -> Iterator[tuple[int, int]]:
        """The position and repeats of the selected cases of some tiers, in file order."""
        start = 0
        for suite, selected in zip(self.suites, self.selected, strict=True):
            end = start + selected
            if suite.tier in tiers:
                yield from zip(self._positions[start:end], self._repeats[start:end], strict=True)
            start = end

    def _by_case(self, tiers: Collection[Tier]) -> Iterator[int]:
        """Trial numbers case by case, so that each case is complete early."""
        for position in self.order(tiers):
            yield from (_number(position, r) for r in range(self.repeats_of(position)))

    def _remaining(self, numbers: Iterable[int], finished: FinishedTrials) -> Iterator[Trial]:
        last: PlannedCase | None = None
        for number in numbers:
            if finished.has_number(number):
                continue
            position, repeat = _trial(number)
            if last is None or last.position != position:
                last = self.at(position)
            yield Trial(last, repeat)

    def _matching(self) -> Iterator[PlannedCase]:
        """The cases that match all filters."""
        for index, suite in enumerate(self.suites):
            if suite.streamed or not self._has_tier(suite):
                continue
            for position, case in enumerate(suite.cases, position_of(index, 0)):
                if self.matches(index, case):
                    yield self.planned_case(position, index, case)

    def _has_tier(self, suite: EvalSuite) -> bool:
        return not self.options.tier or suite.tier in self.options.tier

    def matches(self, suite: int, case: EvalCase) -> bool:
        """Does the case match all filters?"""
        patterns, tags = self.options.filter, self.options.tag
        if patterns and not _matches_any(case.id, patterns):
            return False
        if tags and not {*map(normal_name, tags)} & {*map(normal_name, case.tags)}:
            return False
        return self._is_selected(suite, case) and self._wanted(suite, case)

    def _is_selected(self, suite: int, case: EvalCase) -> bool:
        if not self._filter.terms:
            return True
        case = self._defaults.applied(case)
        return self._filter.matches(row_of_case(self._suite_names[suite], case, self._filter))

    @property
    def is_unfiltered(self) -> bool:
        """Is every case selected, and asked as often as it says itself?"""
        options = self.options
        chosen = options.filter or options.tag or options.select
        narrowed = chosen or options.repeat not in (None, 1)
        return not narrowed and self._wanted is _any_case

    def planned_case(self, position: int, suite: int, case: EvalCase) -> PlannedCase:
        """The case with default evaluators if it has none of its own, and its repeats."""
        case = self._defaults.applied(case)
        return PlannedCase(position, suite, case, repeats_of(case, self.options))


def repeats_of(case: EvalCase, options: RunOptions) -> int:
    """How often a case is asked; one that is skipped is recorded once."""
    return 1 if case.skip is not None else options.repeat or case.repeat or 1


def _matches_any(case_id: str, patterns: Iterable[str]) -> bool:
    name = normal_name(case_id)
    return any(fnmatchcase(name, normal_name(pattern)) for pattern in patterns)
