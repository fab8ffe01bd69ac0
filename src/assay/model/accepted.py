"""AcceptedLoss: an entry under `accepted` in the configuration."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field

from assay.wire.fields import Text
from assay.wire.shape import Shape
from assay.wire.validation_errors import problem


def _check_date(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        hint = "for example 2026-12-31"
        raise problem("wrong-value", f"{value!r} is not a date", hint) from None


class AcceptedLoss(Shape):
    """A case that may fail although it passed before, and why.

    `case` is its id, or its eval file and id as reports print them: `evals/a.eval.yaml: refund`.
    """

    case: Text
    reason: Text
    until: (
        Annotated[Text, AfterValidator(_check_date), Field(json_schema_extra={"format": "date"})]
        | None
    ) = None
