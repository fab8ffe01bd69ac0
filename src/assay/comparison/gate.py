"""The gate: what fails a build that has a baseline.

A failure that repeats is believed; for an agent that changes its answers, statistics decide. A loss
is a comparable case that passed before and fails now. The losses of a live target are asked again,
and recorded as trials of the run, so that every comparison finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import get_args

import msgspec

from assay.comparison.decision import ALPHA, Finding, between, more_cases, rates
from assay.comparison.decision import rounded as rounded_count
from assay.errors import UnknownName, UsageError
from assay.model.accepted import AcceptedLoss
from assay.model.comparison import CaseOutcome, CaseRef, GateVerdict, Loss, WorseTest
from assay.model.options import Gate
from assay.model.score import reaches
from assay.stats.distributions import binomial_cdf
from assay.stats.paired import Pairs
from assay.stats.repeats import at_least_by_chance
from assay.stats.sequential import Sequential
from assay.text import count, exact_percent, exact_points

GATES = get_args(Gate)
#: How often an unstable case is assumed to fail all its re-asks by chance.
CHANCE_OF_REPEAT = 1 / 8
_MAX_REPEATS = 50


class GateRules(msgspec.Struct, frozen=True):
    """When the gate fails, by the options of a run.

    `min_pass_rate` is for cases without a baseline; all of them must pass if it is None.
    `sequential` replaces the usual test if the candidate was to stop once decided. `accepted`
    losses do not count; on the day `today`, some may have expired.
    """

    gate: Gate = "regression"
    margin: float = 0.02
    strict: bool = False
    min_pass_rate: float | None = None
    sequential: Sequential | None = None
    accepted: tuple[AcceptedLoss, ...] = ()
    today: date | None = None

    def checked(self) -> GateRules:
        """These rules; raises UsageError if they are invalid."""
        if self.gate not in GATES:
            raise UnknownName("gate", self.gate, GATES)
        if not 0 <= self.margin <= 1:
            raise UsageError(
                f"the margin is {self.margin!r}; it must be between 0 and 1, for example 0.02"
            )
        return self


class WatchedCases(msgspec.Struct):
    """The cases that the gate checks individually."""

    losses: list[Loss] = []
    #: Losses that passed all trials before and none now.
    flips: list[CaseRef] = []
    #: The fewest trials, of both runs together, that any of the flips has.
    flip_trials: int = 0
    #: How many cases passed only some of their trials.
    flaky: int = 0
    failed_added: int = 0
    failed_changed: int = 0
    judged_without_baseline: int = 0

    def add_loss(self, before: CaseOutcome, now: CaseOutcome) -> None:
        loss = loss_of(now)
        self.losses.append(loss)
        always, never = before.passes == before.judged > 1, now.passes == 0 and now.judged > 1
        if always and never and loss.status != "excused":
            trials = before.judged + now.judged
            self.flip_trials = min(self.flip_trials or trials, trials)
            self.flips.append(now.ref)

    def count(self, *statuses: str) -> int:
        return sum(loss.status in statuses for loss in self.losses)

    @property
    def real_flips(self) -> list[CaseRef]:
        """The flips, unless the flaky cases of the same two runs explain them."""
        expected = _expected_flips(self.flaky, self.flip_trials) if self.flips else 0.0
        return self.flips if at_least_by_chance(len(self.flips), expected) < ALPHA else []


def _expected_flips(flaky: int, trials: int) -> float:
    """How many flips the flaky cases of two runs explain.

    A case that passes half of the time, with t trials in both runs together, passes all of the
    first run and none of the second once in 2^t, and is seen to be flaky in all but four of 2^t.
    """
    chance: float = 0.5**trials
    return flaky * chance / (1 - 4 * chance)


def loss_of(now: CaseOutcome) -> Loss:
    """The loss of a case that passed before and fails now."""
    status, reasks = now.loss_status, now.reasks
    if status == "excused" and not reasks.excuse(critical=now.critical):
        shown = f"{now.passes} of {now.judged} trials passed"
    elif not reasks:
        shown = "not asked again"
    else:
        shown = f"{reasks.passed} of {count(reasks.judged, 're-ask')} passed"
        if now.critical:
            shown += " (critical: more than half must pass)"
        if reasks.errored and status != "excused":
            shown += f", {reasks.errored} could not be judged"
    words = {
        "excused": "flaky, so excused",
        "repeated": "the failure repeats",
        "unconfirmed": "not confirmed",
    }
    reason = f"passed before, fails now: {words[status]}; {shown}"
    return Loss(*now.ref, status, now.critical, reasks, reason)


class GateResult(msgspec.Struct, frozen=True):
    """The result of the gate: `failures` are why it fails, `undecided` why it cannot decide."""

    verdict: GateVerdict
    failures: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    exit_code: int = 0


def apply_gate(
    finding: Finding, worse: WorseTest, watched: WatchedCases, rules: GateRules
) -> GateResult:
    """Apply the gate."""
    gates = {"regression": _regression, "strict": _strict, "non-inferiority": _inferiority}
    found = gates[rules.gate](finding, worse, watched, rules)
    failures = (*found, *_without_baseline(watched, rules))
    if failures:
        return GateResult("failed", failures, exit_code=1)
    undecided = tuple(_undecided(finding, watched, rules))
    if not undecided:
        return GateResult("passed")
    code = 4 if rules.strict else 0
    if rules.gate == "regression" and _unconfirmed_critical(watched):
        code = 3
    return GateResult("inconclusive", undecided=undecided, exit_code=code)


def _regression(
    finding: Finding, worse: WorseTest, watched: WatchedCases, rules: GateRules
) -> Iterator[str]:
    critical = sum(_fails_alone(loss) for loss in watched.losses)
    if critical:
        yield f"{count(critical, 'critical case')} passed before and {_verb(critical)} now"
    repeated, excused = watched.count("repeated"), watched.count("excused")
    if repeated and repeats_by_chance(repeated, excused) < ALPHA:
        yield _repeated_words(repeated, excused)
    if worse.significant:
        yield f"the pass rate fell: {rates(finding.pairs)}"
    if flips := len(watched.real_flips):
        yield f"{count(flips, 'case')} passed every trial before and none now"


def repeats_by_chance(repeated: int, excused: int) -> float:
    """The chance of this many repeated losses if all these cases just change their answers.

    It is 0 if no loss is excused: then nothing shows that the agent changes its answers.
    """
    if not excused:
        return 0.0
    return 1 - binomial_cdf(repeated - 1, repeated + excused, CHANCE_OF_REPEAT)


def _repeated_words(repeated: int, excused: int) -> str:
    text = f"{count(repeated, 'lost case')} failed every re-ask"
    if excused:
        text += f", and only {excused} passed again: more than chance explains"
    return text


def _fails_alone(loss: Loss) -> bool:
    """Is this a critical loss that repeated, or that cannot be asked again at all?"""
    asked = bool(loss.reasks)
    return loss.critical and (
        loss.status == "repeated" or (loss.status == "unconfirmed" and not asked)
    )


def _unconfirmed_critical(watched: WatchedCases) -> bool:
    return any(loss.critical and loss.status == "unconfirmed" for loss in watched.losses)


def _strict(
    finding: Finding, worse: WorseTest, watched: WatchedCases, rules: GateRules
) -> Iterator[str]:
    if lost := len(watched.losses):
        yield f"{count(lost, 'case')} passed before and {_verb(lost)} now"


def _inferiority(
    finding: Finding, worse: WorseTest, watched: WatchedCases, rules: GateRules
) -> Iterator[str]:
    limit = f"the pass rate may be lower by more than {exact_points(rules.margin)} points"
    if finding.difference is None:
        yield f"{limit}: no case can be compared"
    elif not finding.difference.low > -rules.margin:
        yield f"{limit}: the difference lies {between(finding.difference)}"


def _without_baseline(watched: WatchedCases, rules: GateRules) -> Iterator[str]:
    added, changed = watched.failed_added, watched.failed_changed
    if rules.min_pass_rate is None:
        if added:
            yield f"{count(added, 'new case')} {_verb(added)}"
        if changed:
            yield f"{count(changed, 'case')} that changed since the baseline {_verb(changed)}"
    elif failed := added + changed:
        passed = watched.judged_without_baseline - failed
        rate = passed / watched.judged_without_baseline
        if not reaches(rate, rules.min_pass_rate):
            found = f"{passed} of {watched.judged_without_baseline} cases without a baseline pass"
            yield f"{found}, less than {exact_percent(rules.min_pass_rate)}"


def _undecided(finding: Finding, watched: WatchedCases, rules: GateRules) -> Iterator[str]:
    if finding.decision == "not_comparable":
        yield "no case can be compared with the baseline"
    if rules.gate != "regression":
        return
    repeated, excused = watched.count("repeated"), watched.count("excused")
    if repeated:
        yield (
            f"{count(repeated, 'lost case')} failed every re-ask, but {excused} passed again:"
            " the agent changes its answers, so this may be chance"
        )
    unconfirmed = [loss for loss in watched.losses if loss.status == "unconfirmed"]
    if untried := sum(not loss.reasks for loss in unconfirmed):
        yield f"{count(untried, 'lost case')} could not be asked again"
    if rest := len(unconfirmed) - untried:
        yield f"{count(rest, 'lost case')} could not be confirmed: not every re-ask was judged"
    if open_losses := repeated + len(unconfirmed):
        yield _settling(finding.pairs, rules.margin, open_losses, excused)


def _settling(pairs: Pairs, margin: float, losses: int, excused: int) -> str:
    """What would settle whether these losses are chance."""
    repeats = _repeats_needed(losses, max(excused, 1))
    cases = more_cases(pairs, margin)
    # One more case means that the pass rate is decided already, which does not settle the losses.
    more = (
        "" if cases in (None, 1) else f"about {rounded_count(cases):,} more cases like these, or "
    )
    return f"to settle it: {more}--repeat {repeats} in both runs"


def _repeats_needed(losses: int, flaky: int) -> int:
    """How many repeats make this many flips unlikely to be chance."""
    for repeats in range(2, _MAX_REPEATS):
        if at_least_by_chance(losses, _expected_flips(flaky, 2 * repeats)) < ALPHA:
            return repeats
    return _MAX_REPEATS


def named(refs: Sequence[CaseRef], limit: int = 10) -> str:
    """The first cases by name, and how many more there are."""
    rest = f" and {len(refs) - limit:,} more" if len(refs) > limit else ""
    return ", ".join(map(str, refs[:limit])) + rest


def _verb(number: int) -> str:
    return "fails" if number == 1 else "fail"


def flips_note(watched: WatchedCases) -> Iterable[str]:
    """A note about flips that do not count."""
    if watched.flips and not watched.real_flips:
        found = named(watched.flips)
        yield f"passed every trial before and none now, as the flaky cases explain: {found}"
