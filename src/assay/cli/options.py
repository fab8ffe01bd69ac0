"""Command-line options generated from the fields of RequestOptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from assay.cli.completion import filters
from assay.model.case_filter import parse_filter
from assay.model.options import Interface, RequestOptions, options_where, traits_of
from assay.wire.document import Document
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext


def run_options(interface: Interface) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options that a command offers."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(options_where(lambda option: interface in option.interfaces)):
            function = _option(name, RequestOptions.model_fields[name])(function)
        return function

    return decorate


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options given on the command line, validated; errors name the flag, not the field."""
    written = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }
    parse_filter(str(written.get("select", "")))  # shows each mistake at its column
    document = Document.unplaced("options", written)
    for problem in check(RequestOptions, document, (), written, ValidationContext())[1]:
        raise click.UsageError(
            re.sub(r"^'(\w+)(?:\[\d+\])?'", lambda found: traits_of(found[1]).flag, problem.advice)
        )
    return written


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    traits = traits_of(name, RequestOptions)
    flag = traits.flag
    text = field.description or ""
    kind = _value_type(field.annotation)
    if kind is bool:
        # No default: if the flag is not given, the configuration decides.
        both = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(both, name, default=None, help=text)
    if traits.once:
        once: dict[str, Any] = {"multiple": True, "callback": _only_one}
        once["shell_complete"] = filters if name == "select" else None
        return click.option(flag, name, metavar=traits.metavar, help=text, **once)
    default = field.default
    if default is not None and default != ():
        shown = f"{default:g}" if kind in (int, float) else default
        text = f"{text.removesuffix('.')} ({shown})."
    return click.option(
        flag,
        name,
        type=click.Choice(kind) if isinstance(kind, tuple) else kind,
        multiple=_is_list(field.annotation),
        metavar=traits.metavar,
        default=None,
        help=text,
    )


def _only_one(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | None:
    if len(values) > 1:
        found = " and ".join(map(repr, values))
        raise click.BadParameter(f"{found} are given; a run has one", context, parameter)
    return values[0] if values else None


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(map(_is_list, get_args(annotation)))


def _value_type(annotation: Any) -> Any:
    """int, float, str or bool, or a tuple of choices."""
    if annotation in (int, float, str, bool):
        return annotation
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    for part in get_args(annotation):
        if part is type(None) or part is ...:
            continue
        found = _value_type(part)
        if found is not None:
            return found
    return str if annotation is dict or get_origin(annotation) in (dict, Union) else None
