"""Field types that many shapes share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AllowInfNan, BeforeValidator, Field, Strict, StrictBool

from assay.wire.validation_errors import problem, shown


def _integer(value: Any) -> Any:
    """3.0 is the whole number 3, as in JSON Schema; true is not 1."""
    if type(value) is int or (type(value) is float and value.is_integer()):
        if -(2**63) <= value < 2**64:  # as in documents
            return int(value)
        raise problem("wrong-value", f"is {shown(value)}; it must fit 64 bits")
    raise problem("wrong-type", f"is {shown(value)}; it must be a whole number")


def _skip_reason(value: Any) -> Any:
    """Authors often write a flag; the usual hint, to put it in quotes, would not help."""
    if value is True:
        hint = "for example skip: waits for the new API"
        raise problem("wrong-type", "is true; it must be the reason, as text", hint)
    if value is False:
        message, hint = "is false; it must be the reason, as text", "leave it out to run the case"
        raise problem("wrong-type", message, hint)
    return value


def _single_line(value: str) -> str:
    if not value or value != value.strip() or "\n" in value or "\r" in value:
        raise problem("wrong-value", f"{value!r} is empty, has space around it or spans lines")
    return value


Json = Any  # documents only have JSON values
Flag = StrictBool
# An infinite limit would not be one; documents have no infinite numbers either.
Number = Annotated[float, Strict(), AllowInfNan(False)]
Text = Annotated[str, Field(min_length=1)]
NonBlankText = Annotated[str, Field(pattern=r"\S")]
SkipReason = Annotated[NonBlankText, BeforeValidator(_skip_reason)]
CaseId = Annotated[
    str,
    AfterValidator(_single_line),
    Field(json_schema_extra={"pattern": r"^\S([^\r\n]*\S)?$"}),
]
Rate = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
# Limits come before the validator: after it they would be missing in the JSON Schema.
Count = Annotated[int, Field(ge=0), BeforeValidator(_integer)]
AtLeastOne = Annotated[int, Field(ge=1), BeforeValidator(_integer)]
#: Workers and repeats: more are surely a mistake, and do not fit on a machine.
Several = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(_integer)]

#: How often a judge is asked one question: each is a call that costs.
Samples = Annotated[int, Field(ge=1, le=100), BeforeValidator(_integer)]


def Empty(factory: type) -> Any:  # noqa: N802 - reads as part of the field's type
    """An empty default from a factory, because pydantic would deep-copy a shared one."""
    return Field(default_factory=factory)
