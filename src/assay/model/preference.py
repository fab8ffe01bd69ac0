"""Preference: a judge's choice between the answers of two targets, case by case."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from assay.model.calibration import CalibrationState
from assay.model.group import GroupCase
from assay.model.json_encoding import as_dict
from assay.model.result import Count
from assay.model.score import Amount, Share
from assay.record import Record
from assay.stats.estimates import Estimate
from assay.wire.fields import Text
from assay.wire.shape import Shape

#: Which of two answers is better.
Preferred = Literal["a", "b", "tie"]


class PreferenceSettings(Shape):
    """How answers of several targets are compared: by which `criteria`, and by which `judge`."""

    criteria: Text
    judge: Text | None = None


class AnswerPair(msgspec.Struct, frozen=True):
    """Two answers to a question, and what is known of a good one."""

    question: str
    a: str
    b: str
    expected_outcome: str = ""
    reference_answer: str = ""


class Choice(NamedTuple):
    """The better answer of a pair by both orders, and the reasons that the judge gave."""

    better: Preferred
    flipped: bool
    reasons: tuple[str, str]


class JudgedPair(GroupCase, frozen=True, omit_defaults=True):
    """The answers of the targets `a` and `b` to a case, judged in both orders.

    `preferred` is a tie unless both orders name the same answer; None if the judge gave no usable
    reply, which `error` explains. It is `flipped` if each order has another winner. `reasons` are
    those of both orders. `longer` is the longer answer, if there is one. Answers that are
    `identical` are a tie, about which the judge is not asked.
    """

    a: str
    b: str
    preferred: Preferred | None
    flipped: bool = False
    reasons: tuple[str, ...] = ()
    error: str = ""
    longer: Literal["a", "b", ""] = ""
    identical: bool = False


class PreferencePair(msgspec.Struct, frozen=True, rename="camel"):
    """Two targets: how often a judge preferred the answers of `b` to those of `a`.

    `judged` counts the cases in which `wins` are those of `b` and `losses` those of `a`. `flipped`
    of the ties are cases in which the order decided; `flip_rate` is their share of the cases about
    which the judge was asked. `identical` of the ties are equal answers. `win_rate` is that of `b`,
    with ties as half wins; `corrected` is the same as people would judge, if the judge is
    calibrated. `adjusted` is the p-value adjusted for the number of pairs. `better` is the target
    that is significantly better. In `longer_won` of `longer_won + shorter_won` decided cases the
    longer answer won.
    """

    a: str
    b: str
    judged: Count
    wins: Count
    losses: Count
    ties: Count
    flipped: Count
    errored: Count
    longer_won: Count
    shorter_won: Count
    identical: Count = 0
    flip_rate: Share | None = None
    win_rate: Estimate | None = None
    corrected: Estimate | None = None
    test: str | None = None
    p_value: float | None = None
    adjusted: float | None = None
    better: str | None = None


class RankedTarget(msgspec.Struct, frozen=True):
    """A target in the order of preference; `strength` is its chance to win against an average one.

    It is None for a target of which nothing was judged.
    """

    target: str
    strength: Estimate | None


class PreferenceJudge(msgspec.Struct, frozen=True, rename="camel"):
    """The judge of preferences, and what it did: `calls` were made, and `cached` replies reused.

    `id` is a hash of the judge and the criteria. `cost_usd` is None if the judge reports no cost.
    """

    name: str
    id: str
    calls: Count = 0
    cached: Count = 0
    cost_usd: Amount | None = None
    calibration: CalibrationState = "none"


class PreferenceLabels(msgspec.Struct, frozen=True, rename="camel"):
    """How far a judge agrees with people who compared the same answers.

    `agreement` is the share of the labels with the same verdict, ties included. `kappa` is about
    those `decided` labels where neither the judge nor the person found a tie. `unknown` labels are
    about cases that were not judged.
    """

    labels: Count
    unknown: Count
    decided: Count
    agreement: Estimate | None
    kappa: Estimate | None


class Preference(Record, frozen=True, rename="camel"):
    """Which answers a judge prefers by some criteria, over the cases that all targets answered.

    More than two targets are ranked, the best first. `unasked` pairs were not judged because the
    budget was spent or the judge did not work.
    """

    criteria: str
    judge: PreferenceJudge
    targets: tuple[str, ...]
    pairs: tuple[PreferencePair, ...]
    ranking: tuple[RankedTarget, ...] = ()
    cases: tuple[JudgedPair, ...] = ()
    labels: PreferenceLabels | None = None
    unasked: Count = 0
    notes: tuple[str, ...] = ()

    @property
    def errored(self) -> int:
        """How many pairs of answers the judge could not judge."""
        return sum(pair.errored for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        """3 if pairs of answers were not judged, else 0."""
        return 3 if self.errored or self.unasked else 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the preference."""
        return as_dict(self)
