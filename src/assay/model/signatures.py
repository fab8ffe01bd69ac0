"""Signatures that show the keys of a TypedDict, so that help() and completion know them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar, get_args, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])


class _Omitted:
    """The default of a key that is as in the documentation when it is not given."""

    def __repr__(self) -> str:
        return "..."


_OMITTED = _Omitted()


def shows_keys(function: Function) -> Function:
    """The same function; its signature has each key of its `**keys: Unpack[...]`."""
    found = inspect.signature(function)
    *named, rest = found.parameters.values()
    (keys,) = get_args(get_type_hints(function)[rest.name])
    parameters = [*map(_with_default, named)]
    for name, written in keys.__annotations__.items():
        annotation = getattr(written, "__forward_arg__", written)
        kind = Parameter.KEYWORD_ONLY
        parameters.append(Parameter(name, kind, default=_OMITTED, annotation=annotation))
    function.__signature__ = found.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


def _with_default(parameter: Parameter) -> Parameter:
    return parameter.replace(default=_OMITTED) if parameter.default is ... else parameter
