"""Reads a provider's reply in the same way as from a file of observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from assay.errors import ObservationError, TargetError
from assay.model.observation import Observation, Usage
from assay.observations.measures import read_usage
from assay.observations.records import RecordReader
from assay.wire.validation_errors import shown

T = TypeVar("T")
_NAMES: dict[type, str] = {dict: "a mapping", list: "a list"}


def require(value: Any, kind: type[T], what: str) -> T:
    """The value; raises TargetError if it is of another type."""
    if not isinstance(value, kind):
        raise TargetError(f"{what} is {shown(value)}, not {_NAMES[kind]}")
    return value


def observation(data: dict[str, Any], read: Callable[[Any], Observation]) -> Observation:
    """The observation of a reply; an invalid usage is dropped rather than the answer."""
    try:
        seen = read({**data, "usage": None})
    except ObservationError as error:
        raise TargetError(f"the reply cannot be read: {error}") from None
    return seen.replace(usage=_usage(data.get("usage")), raw=data)


def _usage(raw: Any) -> Usage | None:
    try:
        return None if raw is None else read_usage(RecordReader(raw))
    except ObservationError:
        return None
