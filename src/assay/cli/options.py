"""Command-line options generated from the fields of RunOptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from assay.documents.checking import check
from assay.documents.document import Document
from assay.model.options import RunOptions
from assay.model.reading import Reading

#: Options with another name on the command line than in files.
FLAGS = {"timeout_seconds": "--timeout", "evaluators": "--evaluator"}
#: The placeholder for the value in the help.
METAVARS = {
    "filter": "GLOB",
    "shard": "I/N",
    "target": "TARGET",
    "judge": "TARGET",
    "baseline": "RUN",
    "evaluators": "TYPE",
    "tag": "TAG",
}

#: Options that may be given only once: a user may well mean both, and click takes the last.
ONCE = ("target", "judge", "baseline")


def run_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options of a run: these, or all of them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        fields = RunOptions.model_fields
        for name in reversed(names or tuple(fields)):
            function = _option(name, fields[name])(function)
        return function

    return decorate


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options given on the command line, validated; errors name the flag, not the field."""
    written = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }
    document = Document.unplaced("options", written)
    for problem in check(RunOptions, document, (), written, Reading())[1]:
        raise click.UsageError(
            re.sub(r"^'(\w+)(?:\[\d+\])?'", lambda found: _flag(found[1]), problem.advice)
        )
    return written


def _flag(name: str) -> str:
    return FLAGS.get(name, "--" + name.replace("_", "-"))


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag = _flag(name)
    text = field.description or ""
    kind = _value_type(field.annotation)
    if kind is bool:
        # No default: if the flag is not given, the configuration decides.
        both = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(both, name, default=None, help=text)
    if name in ONCE:
        word = METAVARS[name]
        return click.option(flag, name, multiple=True, callback=_only_one, metavar=word, help=text)
    default = field.default
    if default is not None and default != ():
        shown = f"{default:g}" if kind in (int, float) else default
        text = f"{text.removesuffix('.')} ({shown})."
    return click.option(
        flag,
        name,
        type=click.Choice(kind) if isinstance(kind, tuple) else kind,
        multiple=_is_list(field.annotation),
        metavar=METAVARS.get(name),
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
    return get_origin(annotation) is tuple


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
