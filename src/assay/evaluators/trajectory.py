"""Judges an agent's calls against an expected path: score, diff and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from assay.evaluators.alignment import Pairs, assign, highest_share, in_order, in_place
from assay.evaluators.steps import BROKEN, KEPT, NONE, ExpectedStep, Grid
from assay.model.arguments import Texts, as_dict
from assay.model.diff import call_text, difference_text
from assay.model.message import ToolCall
from assay.model.score import EvaluationScore

#: One thing that counts towards the score: whether it holds, and the message about it.
Aspect = tuple[bool, str]
#: The tool, the texts of a plain step, the test of any other step, and its JSON.
Test = tuple[str, Texts | None, Callable[[ToolCall], bool] | None, dict[str, Any]]
#: Hits, misses, diff and the number of matched steps.
StepsVerdict = tuple[tuple[str, ...], tuple[str, ...], list[dict[str, Any]], int]


class Trajectory:
    """An expected path, prepared; `steps` is None if only the numbers of calls are checked."""

    def __init__(
        self,
        mode: str,
        steps: tuple[ExpectedStep, ...] | None,
        minimums: Mapping[str, int],
        maximums: Mapping[str, int],
        ignore: Collection[str],
        forbidden: Collection[str],
    ) -> None:
        self.mode, self.steps = mode, steps
        self.minimums, self.maximums = minimums, maximums
        self.ignore, self.forbidden = ignore, forbidden
        self._tests = [_test(step) for step in steps or ()]
        #: Is there nothing to check but the steps?
        self._steps_only = steps is not None and not (minimums or maximums or ignore or forbidden)
        self._cached_hits: tuple[str, ...] | None = None

    def judge(self, calls: tuple[ToolCall, ...]) -> EvaluationScore:
        if self._steps_only and (diff := self._match_in_place(calls)) is not None:
            return self._all_matched(diff)
        banned: list[str] = []
        if self.forbidden:
            banned = [call.tool for call in calls if call.tool in self.forbidden]
        if self.ignore:
            calls = tuple(call for call in calls if call.tool not in self.ignore)
        counts = self._counts(calls) if self.minimums or self.maximums else []
        hits, misses, diff, matched = self._judge_steps(calls, counts)
        if counts:
            hits = (*hits, *(words for held, words in counts if held))
            misses = (*misses, *(words for held, words in counts if not held))
        steps = len(self.steps or ())
        details = {"diff": diff, "matched": matched, "expected": steps, "actual": len(calls)}
        return _score(hits, misses, banned, details)

    def _judge_steps(self, calls: Sequence[ToolCall], counts: Sequence[Aspect]) -> StepsVerdict:
        steps = self.steps
        if steps is None:
            return (), (), [], 0
        if (diff := self._match_in_place(calls)) is not None:
            return self._hits, (), diff, len(steps)
        alignment = Alignment(self.mode, steps, calls, counts)
        aspects = list(alignment.aspects())
        hits = tuple(words for held, words in aspects if held)
        misses = tuple(words for held, words in aspects if not held)
        return hits, misses, alignment.diff(), len(alignment.pairs)

    def _all_matched(self, diff: list[dict[str, Any]]) -> EvaluationScore:
        """The score if every call is in its place: the common case."""
        number = len(diff)
        details = {"diff": diff, "matched": number, "expected": number, "actual": number}
        hits = self._hits
        reasoning = _reasoning(len(hits), len(hits))
        return EvaluationScore(1.0, "pass", hits, (), reasoning, details)

    def _match_in_place(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]] | None:
        """The diff, if every call satisfies the step in its place; otherwise None."""
        if len(calls) != len(self._tests):
            return None
        diff = []
        # The hot path of most runs: plain steps are compared here without a function call.
        for (tool, texts, fulfilled_by, expected), call in zip(self._tests, calls, strict=True):
            given = call.input
            if fulfilled_by is not None:
                if not fulfilled_by(call):
                    return None
            elif call.tool != tool or (texts and type(given) is not dict):
                return None
            else:
                for key, text in texts or ():
                    if given.get(key) != text:
                        return None
            actual = {"tool": call.tool} if given is None else {"tool": call.tool, "args": given}
            diff.append({"status": "matched", "expected": expected, "actual": actual})
        return diff

    @property
    def _hits(self) -> tuple[str, ...]:
        """The hits if every call is in its place."""
        if self._cached_hits is None:
            self._cached_hits = self._all_hits()
        return self._cached_hits

    def _all_hits(self) -> tuple[str, ...]:
        steps = self.steps or ()
        if self.mode == "exact":
            hits = [_in_place(place, step) for place, step in enumerate(steps)]
        else:
            needed = [step for step in steps if self.mode == "subset" or not step.optional]
            hits = [_called(step) for step in needed]
        return (*hits, *(_in_time(step) for step in steps if step.limited))

    def _counts(self, calls: Sequence[ToolCall]) -> list[Aspect]:
        """The minimums and maximums."""
        made = Counter(call.tool for call in calls)
        least = [
            _counted(t, made[t], made[t] >= n, f"at least {n}") for t, n in self.minimums.items()
        ]
        most = [
            _counted(t, made[t], made[t] <= n, f"at most {n}") for t, n in self.maximums.items()
        ]
        return least + most


def _test(step: ExpectedStep) -> Test:
    tool, texts = step.plain
    return tool, texts, step.fulfilled() if texts is None else None, step.written


class Alignment:
    """The pairs of steps and calls that give the highest score.

    Of equal scores it takes the one with the most pairs, then the most time limits kept. In
    `exact`, `places` has the steps in order, without the optional ones that are left out.
    """

    def __init__(
        self,
        mode: str,
        steps: Sequence[ExpectedStep],
        calls: Sequence[ToolCall],
        counts: Sequence[Aspect],
    ) -> None:
        self.mode, self.steps, self.calls = mode, steps, calls
        self.grid = Grid.of(steps, calls)
        if mode == "subset":
            self._pair_each_call()
            return
        self.needed = [mode == "exact" or not step.optional for step in steps]
        self.counts = sum(held for held, _ in counts), len(counts)
        fixed = not any(step.limited for step in steps) and (
            mode != "exact" or not any(step.optional for step in steps)
        )
        self.pairs, self.places = highest_share(self._solve, self._share, fixed=fixed)
        self.near = self._near_misses()

    def _pair_each_call(self) -> None:
        """Pair each call with the step that suits it best, however often that step is called.

        A step that is called again counts as another step: then no two calls share one.
        """
        rows, by_call = Grid([], []), self.grid.by_call(len(self.calls))
        steps: list[ExpectedStep] = []
        self.pairs, self.near = {}, {}
        for call, (fits, near) in enumerate(by_call):
            if not fits and not near:
                continue
            step = max(fits, key=fits.__getitem__) if fits else min(near, key=near.__getitem__)
            (self.pairs if fits else self.near)[len(steps)] = call
            steps.append(self.steps[step])
            rows.fits.append({call: fits[step]} if fits else {})
            rows.near.append({} if fits else {call: near[step]})
        self.steps, self.grid = steps, rows

    def _solve(self, p: int, q: int) -> tuple[Pairs, list[int]]:
        """The pairs with the most q * satisfied - p * aspects."""
        base = len(self.steps) + 1
        weights = []
        for fits, needed in zip(self.grid.fits, self.needed, strict=True):
            worth = {
                NONE: q * needed * base * base + base,
                KEPT: (q * (needed + 1) - p) * base * base + base + 1,
                BROKEN: (q * needed - p) * base * base + base,
            }
            weights.append({call: worth[t] for call, t in fits.items() if worth[t] > 0})
        if self.mode == "in_order":
            return in_order(weights, len(self.calls)), []
        if self.mode != "exact":
            return assign(weights), []
        optional = [step.optional for step in self.steps]
        places = in_place(weights, optional, len(self.calls), p * base * base)
        pairs = {step: at for at, step in enumerate(places) if at in self.grid.fits[step]}
        return pairs, places

    def _share(self, solution: tuple[Pairs, list[int]]) -> tuple[int, int]:
        """The number of satisfied aspects, and of all aspects."""
        pairs, places = solution
        satisfied, total = self.counts
        if self.mode == "exact":
            total += max(len(places), len(self.calls))
        else:
            total += sum(self.needed)
        for step, call in pairs.items():
            timing = self.grid.fits[step][call]
            satisfied += self.needed[step] + (timing == KEPT)
            total += timing != NONE
        return satisfied, total

    def _near_misses(self) -> Pairs:
        """Unmatched steps, paired with unmatched calls of their tool in a possible position."""
        near = self.grid.near
        if self.mode == "exact":
            return {step: at for at, step in enumerate(self.places) if at in near[step]}
        taken = set(self.pairs.values())
        most = 1 + max((n for row in near for n in row.values()), default=0) * len(self.steps)
        weights: list[dict[int, int]] = []
        for step, row in enumerate(near):
            if step in self.pairs or not self.needed[step]:
                row = {}
            after, before = self._gap(step) if row else (0, 0)
            weights.append(
                {c: most - n for c, n in row.items() if after < c < before and c not in taken}
            )
        return in_order(weights, len(self.calls)) if self.mode == "in_order" else assign(weights)

    def _gap(self, step: int) -> tuple[int, int]:
        """The indices of the calls between which the call of a missing step must be."""
        if self.mode != "in_order":
            return -1, len(self.calls)
        earlier = (call for other, call in self.pairs.items() if other < step)
        later = (call for other, call in self.pairs.items() if other > step)
        return max(earlier, default=-1), min(later, default=len(self.calls))

    def aspects(self) -> Iterator[Aspect]:
        """All aspects, satisfied or not."""
        if self.mode == "exact":
            yield from map(self._exact_place, range(max(len(self.places), len(self.calls))))
        elif self.mode == "subset":
            owners = {call: step for step, call in self.pairs.items()}
            for call in range(len(self.calls)):
                yield self._allowed_call(call, owners.get(call))
        else:
            required = (step for step, needed in enumerate(self.needed) if needed)
            yield from map(self._required_step, required)
        for step, call in sorted(self.pairs.items()):
            timing = self.grid.fits[step][call]
            if timing == KEPT:
                yield True, _in_time(self.steps[step])
            elif timing == BROKEN:
                yield False, f"{self.steps[step].text}: {difference_text(self._late(step, call))}"

    def _required_step(self, step: int) -> Aspect:
        text = self.steps[step].text
        if step in self.pairs:
            return True, _called(self.steps[step])
        if step in self.near:
            return False, f"{text} was called with {self._near_difference(step)}"
        fits = self.grid.fits[step]
        if not fits:
            return False, f"{text} was not called"
        if set(fits).issubset(self.pairs.values()):
            return False, f"{text} was not called again"
        return False, f"{text} was called out of order"

    def _allowed_call(self, call: int, step: int | None) -> Aspect:
        if step is not None:
            return True, _called(self.steps[step])
        text = call_text(_written(self.calls[call]))
        for other, near in self.near.items():
            if near == call:
                return False, f"{text} is not allowed: {self._first_difference(other)}"
        return False, f"{text} is not allowed"

    def _exact_place(self, place: int) -> Aspect:
        if place >= len(self.places):
            return (
                False,
                f"call {place + 1} is {call_text(_written(self.calls[place]))}, expected no more",
            )
        step = self.places[place]
        if step in self.pairs:
            return True, _in_place(place, self.steps[step])
        text = self.steps[step].text
        if step in self.near:
            return False, f"call {place + 1} is not {text}: {self._first_difference(step)}"
        if place >= len(self.calls):
            return False, f"call {place + 1} is missing, expected {text}"
        actual = call_text(_written(self.calls[place]))
        return False, f"call {place + 1} is {actual}, expected {text}"

    def _near_difference(self, step: int) -> str:
        call = self.calls[self.near[step]]
        arguments_differ = self.steps[step].nearest(call).argument_differences(call)
        what = "different arguments" if arguments_differ else "a different result"
        return f"{what}: {self._first_difference(step)}"

    def _first_difference(self, step: int) -> str:
        return difference_text(self._differences(step)[0])

    def _differences(self, step: int) -> list[dict[str, Any]]:
        call = self.calls[self.near[step]]
        return [as_dict(found) for found in self.steps[step].nearest(call).differences(call)]

    def _late(self, step: int, call: int) -> dict[str, Any]:
        """A broken time limit as a difference."""
        made = self.calls[call]
        limit = {"lte": self.steps[step].nearest(made).limit}
        return {"path": "duration_ms", "expected": limit, "actual": made.duration_ms}

    def diff(self) -> list[dict[str, Any]]:
        """The calls in the order they were made; a missing step follows the step before it."""
        owners = {call: step for step, call in (self.near | self.pairs).items()}
        missing = self._missing()
        entries = missing.pop(-1, [])
        for call, made in enumerate(self.calls):
            step = owners.get(call)
            if step is None:
                entries.append({"status": "unexpected", "actual": _written(made)})
            else:
                entries.append(self._pair_entry(step, call))
                entries += missing.get(step, ())
        return entries

    def _missing(self) -> dict[int, list[dict[str, Any]]]:
        """The entries of missing steps, by the last step before them that has a call."""
        entries: dict[int, list[dict[str, Any]]] = {}
        before = -1
        for index, step in enumerate(self.steps):
            if index in self.pairs or index in self.near:
                before = index
            elif not step.optional:
                entry = {"status": "missing", "expected": step.written}
                entries.setdefault(before, []).append(entry)
        return entries

    def _pair_entry(self, step: int, call: int) -> dict[str, Any]:
        matched = step in self.pairs
        entry: dict[str, Any] = {
            "status": "matched" if matched else "wrong_args",
            "expected": self.steps[step].written,
            "actual": _written(self.calls[call]),
        }
        if not matched:
            entry["differences"] = self._differences(step)
        elif self.grid.fits[step][call] == BROKEN:
            entry["differences"] = [self._late(step, call)]
        return entry


def _score(
    hits: tuple[str, ...], misses: tuple[str, ...], banned: list[str], details: dict[str, Any]
) -> EvaluationScore:
    total = len(hits) + len(misses)
    score = len(hits) / total if total else 1.0
    reasoning = _reasoning(len(hits), total)
    if banned:
        names = dict.fromkeys(banned)
        misses = (*(f"{tool} was called, which is forbidden" for tool in names), *misses)
        score, reasoning = 0.0, f"forbidden tools were called: {', '.join(names)}"
    return EvaluationScore(score, None, hits, misses, reasoning, details)


def _reasoning(held: int, total: int) -> str:
    return f"{held} of {total} checks hold" if total else "nothing is required"


def _written(call: ToolCall) -> dict[str, Any]:
    """The JSON of a call that was made."""
    return {"tool": call.tool} if call.input is None else {"tool": call.tool, "args": call.input}


def _called(step: ExpectedStep) -> str:
    return f"{step.text} was called"


def _in_place(place: int, step: ExpectedStep) -> str:
    return f"call {place + 1} is {step.text}"


def _in_time(step: ExpectedStep) -> str:
    return f"{step.text} was within its time limit"


def _counted(tool: str, count: int, held: bool, limit: str) -> Aspect:
    times = "once" if count == 1 else f"{count} times"
    return held, f"{tool} was called {times}, {'' if held else 'not '}{limit}"
