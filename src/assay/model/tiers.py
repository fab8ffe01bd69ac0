"""The wire shapes of the tier files: golden, labeled, regression and rubric cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, SkipValidation, model_validator

from assay.model import tokens
from assay.model.expect import Expect, ExpectBase, GoldenExpect, refuse_tokens, texts_in
from assay.model.rubric import Dimensions
from assay.model.stubs import DEFAULT_MAX_TURNS, Stubs
from assay.wire.fields import (
    AtLeastOne,
    CaseId,
    Count,
    Empty,
    Flag,
    Json,
    NonBlankText,
    SkipReason,
    Text,
)
from assay.wire.shape import Shape
from assay.wire.validation_errors import AnyValidationError, problem, validate_and_check


class TierInput(Shape):
    """What is sent to the agent."""

    message: Annotated[NonBlankText, AfterValidator(refuse_tokens)]


class TierCase(Shape):
    """The keys that the cases of all tiers share."""

    id: CaseId
    description: str
    input: TierInput
    tags: list[Text] = Empty(list)
    metadata: dict[str, Json] = Empty(dict)
    critical: Flag | None = None
    cluster: Text | None = None
    skip: SkipReason | None = None
    stubs: Stubs = Empty(dict)
    maxTurns: AtLeastOne = DEFAULT_MAX_TURNS

    @property
    def block(self) -> ExpectBase | None:
        """The `expect` block, if the tier has one."""
        return getattr(self, "expect", None)


_DATE = re.compile(r"[0-9W-]+(?:T[0-9:.,]+(?:Z|[+-][0-9:]+)?)?\Z")


def _tier_id(prefix: str) -> Any:
    shape = re.compile(rf"{prefix}-[^\s]+-[0-9]{{3,}}\Z")

    def check(value: str) -> str:
        if not shape.match(value):
            message = f"{value!r} does not have the form '{prefix}-<toolname>-NNN'"
            raise problem("bad-id", message, f"for example '{prefix}-get_weather-001'")
        return value

    pattern: Any = {"pattern": rf"^{prefix}-[^\s]+-[0-9]{{3,}}$"}
    return Annotated[str, AfterValidator(check), Field(json_schema_extra=pattern)]


def _check_iso_date(value: str) -> str:
    try:
        datetime.fromisoformat(value)
        if not _DATE.match(value):  # fromisoformat accepts any character as the T
            raise ValueError
    except ValueError:
        message = f"{value!r} is not an ISO 8601 date or time"
        raise problem("bad-date", message, "for example '2026-01-15T10:30:00Z'") from None
    return value


def _snapshot_tokens(raw: Any) -> Iterator[AnyValidationError]:
    """A problem for every snapshot token, in a case that may also have other errors."""
    for path, text in texts_in(raw):
        for token in tokens.find(text):
            if token.source == "snapshot":
                message = f"{token.text} would make the case depend on the day it runs"
                yield problem("snapshot-token", message, "use a seed value or a literal", path)


class GoldenEvalCase(TierCase):
    """A known prompt with one right tool: the routing sanity check."""

    id: _tier_id("gs")  # type: ignore[valid-type]
    expect: GoldenExpect


class LabeledEvalCase(TierCase):
    """Routing under ambiguity, at the edges and under attack."""

    id: _tier_id("ls")  # type: ignore[valid-type]
    difficulty: Literal["straightforward", "ambiguous", "edge"]
    expect: Expect


class RegressionEvalCase(TierCase):
    """A bug that was found and fixed; never edited, only archived."""

    id: _tier_id("rg")  # type: ignore[valid-type]
    difficulty: Literal["regression"]
    createdAt: Annotated[str, AfterValidator(_check_iso_date)]
    bugRef: NonBlankText
    expect: Expect

    @model_validator(mode="wrap")
    @classmethod
    def _takes_no_snapshot(cls, raw: Any, handler: Callable[[Any], Self]) -> Self:
        case: Self = validate_and_check(_snapshot_tokens, raw, handler)
        return case


class RubricEvalCase(TierCase):
    """Quality that a judge scores along dimensions."""

    referenceData: dict[str, Json] | None = None
    rubric: Dimensions


class TierMetadata(Shape):
    """The state of the tool when the cases were written; other keys are kept."""

    model_config = ConfigDict(extra="allow")

    toolName: str = ""
    toolVersion: str = ""
    descriptionHash: str = ""
    description: str = ""
    registrySize: Count = 0
    generatedAt: str | None = None
    tier: Literal["golden", "labeled", "regression", "rubric"] | None = None


class TierFile(Shape):
    """The envelope of a tier file; a bare list of cases is accepted too."""

    metadata: TierMetadata = TierMetadata()
    cases: list[SkipValidation[TierCase]]


TIERS: dict[str, type[TierCase]] = {
    "golden": GoldenEvalCase,
    "labeled": LabeledEvalCase,
    "regression": RegressionEvalCase,
    "rubric": RubricEvalCase,
}
