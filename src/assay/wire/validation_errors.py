"""The errors that validators raise, and how their messages quote values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import ValidationError, WrapValidator
from pydantic_core import InitErrorDetails, PydanticCustomError

from assay.redaction import cut

#: What a validator may raise: one problem with the value itself, or several with paths.
AnyValidationError = PydanticCustomError | ValidationError
Steps = tuple[str | int, ...]


def problem(slug: str, message: str, hint: str = "", at: str | Steps = ()) -> AnyValidationError:
    """A validation error whose slug and hint survive pydantic.

    `at` is the key or the path of the problem below the validated value.
    """
    # The message is an argument and not the template, because it may have braces.
    error = PydanticCustomError("assay", "{text}", {"text": message, "slug": slug, "hint": hint})
    if not at:
        return error
    return merge_errors([error], (at,) if isinstance(at, str) else at)


def merge_errors(errors: Iterable[AnyValidationError], below: Steps = ()) -> ValidationError:
    """Combine errors into one; their paths are `below` a path."""
    details: list[InitErrorDetails] = []
    for error in errors:
        if isinstance(error, PydanticCustomError):
            details.append(InitErrorDetails(type=error, loc=below, input=None))
            continue
        for fault in error.errors(include_url=False):
            kind: Any = fault["type"]
            context = fault.get("ctx", {})
            if kind == "assay":
                kind = PydanticCustomError("assay", "{text}", context)
            place = (*below, *fault["loc"])
            details.append(
                InitErrorDetails(type=kind, loc=place, input=fault["input"], ctx=context)
            )
    return ValidationError.from_exception_data("merged", details)


def raise_all(errors: Iterable[AnyValidationError]) -> None:
    """Raise the errors as one, if there are any."""
    if found := list(errors):
        raise merge_errors(found)


def AlsoCheck(check: Callable[[Any], Iterable[AnyValidationError]]) -> WrapValidator:  # noqa: N802 - as below
    """A validator that reports what `check` finds in the raw value together with other errors."""
    return WrapValidator(lambda raw, handler: validate_and_check(check, raw, handler))


def validate_and_check(
    check: Callable[[Any], Iterable[AnyValidationError]], raw: Any, handler: Callable[[Any], Any]
) -> Any:
    """Validate the raw value with pydantic and with `check`, and raise the errors of both."""
    try:
        value = handler(raw)
    except ValidationError as error:
        raise merge_errors([error, *check(raw)]) from None
    raise_all(check(raw))
    return value


def repeated(
    items: Any, message: str, *keys: str, default: str = ""
) -> Iterator[AnyValidationError]:
    """A problem for each item of a list that has the name of an earlier one, under any of the keys.

    Items may be raw and invalid; one without a name gets the `default` with its number.
    """
    seen: set[str] = set()
    for index, item in enumerate(items if isinstance(items, (list, tuple)) else ()):
        # A validated item may have a generated name: only use the keys of the author.
        written = getattr(item, "model_fields_set", ())
        names = item if isinstance(item, dict) else {key: getattr(item, key) for key in written}
        key = next((key for key in keys if names.get(key)), keys[0])
        name = names.get(key) or default.format(index + 1)
        if isinstance(name, str) and name:
            if name in seen:
                yield problem("wrong-value", message.format(repr(name)), at=(index, key))
            seen.add(name)


def shown(value: Any, limit: int = 60) -> str:
    """How a message quotes a value: similar to JSON, redacted and truncated."""
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return repr(cut(value, limit) if isinstance(value, str) else value)


def kind_of(value: Any) -> str:
    """How a message names a Python object: by its class."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
