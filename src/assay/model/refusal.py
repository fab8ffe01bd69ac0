"""What validators raise, and how they quote what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import ValidationError, WrapValidator
from pydantic_core import InitErrorDetails, PydanticCustomError

#: What a validator may raise: one problem with the value itself, or several at their places.
Refusal = PydanticCustomError | ValidationError
Steps = tuple[str | int, ...]


def problem(slug: str, message: str, hint: str = "", at: str | Steps = ()) -> Refusal:
    """A validation error that keeps its slug and hint on the way through pydantic.

    `at` is the key or the path below the validated value that the problem is about.
    """
    # The message is an argument, not the template: braces in it must stay as they are.
    error = PydanticCustomError("assay", "{text}", {"text": message, "slug": slug, "hint": hint})
    if not at:
        return error
    return together([error], (at,) if isinstance(at, str) else at)


def together(refusals: Iterable[Refusal], below: Steps = ()) -> ValidationError:
    """All of these in one error, with their places `below` a path."""
    details: list[InitErrorDetails] = []
    for refusal in refusals:
        if isinstance(refusal, PydanticCustomError):
            details.append(InitErrorDetails(type=refusal, loc=below, input=None))
            continue
        for fault in refusal.errors(include_url=False):
            kind: Any = fault["type"]
            context = fault.get("ctx", {})
            if kind == "assay":
                kind = PydanticCustomError("assay", "{text}", context)
            place = (*below, *fault["loc"])
            details.append(
                InitErrorDetails(type=kind, loc=place, input=fault["input"], ctx=context)
            )
    return ValidationError.from_exception_data("together", details)


def raise_all(refusals: Iterable[Refusal]) -> None:
    """Raise what there is as one error."""
    if found := list(refusals):
        raise together(found)


def Besides(check: Callable[[Any], Iterable[Refusal]]) -> WrapValidator:  # noqa: N802 - as below
    """What `check` finds in a raw value is reported together with what is wrong in its parts."""
    return WrapValidator(lambda raw, handler: beside(check, raw, handler))


def beside(
    check: Callable[[Any], Iterable[Refusal]], raw: Any, handler: Callable[[Any], Any]
) -> Any:
    """The value that pydantic makes of the raw one, unless it or `check` finds something wrong."""
    try:
        value = handler(raw)
    except ValidationError as error:
        raise together([error, *check(raw)]) from None
    raise_all(check(raw))
    return value


def repeated(items: Any, message: str, *keys: str, default: str = "") -> Iterator[Refusal]:
    """Items of a list that have the name of an earlier one, under one of the keys.

    Items may be raw and wrong; one without a name has the `default` one, numbered by its place.
    """
    seen: set[str] = set()
    for index, item in enumerate(items if isinstance(items, (list, tuple)) else ()):
        # What was read before has more keys than its author wrote: a name may be given to it.
        written = getattr(item, "model_fields_set", ())
        names = item if isinstance(item, dict) else {key: getattr(item, key) for key in written}
        key = next((key for key in keys if names.get(key)), keys[0])
        name = names.get(key) or default.format(index + 1)
        if isinstance(name, str) and name:
            if name in seen:
                yield problem("wrong-value", message.format(repr(name)), at=(index, key))
            seen.add(name)


def shown(value: Any, limit: int = 60) -> str:
    """How a found value is quoted in a message: as JSON would write it, cut to size."""
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, str) and len(value) > limit:
        value = value[: limit - 3] + "..."
    return repr(value)


def kind_of(value: Any) -> str:
    """How a found Python object is called in a message: by its class."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
