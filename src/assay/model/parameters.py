"""`vars`: one case written once and asked with several rows of values.

Pure functions. `{{name}}` is replaced by the value of the row; `{{{{` is a literal `{{`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from assay.errors import nearest
from assay.model.tokens import JUDGE_VARIABLES, as_text
from assay.wire.fields import Text
from assay.wire.rules import Excludes, Rule, Ruled
from assay.wire.validation_errors import merge_errors, problem, shown

#: More rows of one case are surely a mistake.
MAX_ROWS = 100_000
#: The longest label that is made of values; a longer one would be hard to type.
MAX_LABEL = 60
#: Keys of a row that are about its case; only `id` can be used as a value, too.
OWN_KEYS = ("id", "tags", "metadata")
#: Keys of a case in which names are replaced.
REPLACED = (
    *("description", "input_messages", "input", "expected_messages", "expected_output"),
    *("expected_outcome", "outcome", "criteria", "rubrics", "expect"),
    *("evaluators", "assert", "assertions", "execution", "stubs"),
)

_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACE = re.compile(r"\{\{\{\{|\{\{\s*([A-Za-z_]\w*)\s*\}\}")
#: A text that is a name between braces and nothing else, so that its value keeps its type.
NAME_ALONE = r"^\{\{\s*[A-Za-z_]\w*\s*\}\}$"
_SCALARS = (str, int, float, bool, type(None))
Path = tuple[str | int, ...]


class Row(msgspec.Struct, frozen=True):
    """One row: the values of its names, and what its case gets besides."""

    label: str
    values: Mapping[str, Any]
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    #: whether the label does not say what the values are
    unclear: bool = False

    def description(self, written: str) -> str:
        """The description of its case, with the values if the label does not say them."""
        if not self.unclear:
            return written
        values = ((name, value) for name, value in self.values.items() if name != "id")
        pairs = ", ".join(f"{name} = {as_text(value)}" for name, value in values)
        return f"{written} ({pairs})".lstrip() if pairs else written


def row_of(raw: Mapping[str, Any], number: int) -> Row:
    """The row of a mapping; its label is its id, else its values, else its number."""
    values = {name: value for name, value in raw.items() if name not in OWN_KEYS}
    tags, metadata = raw.get("tags") or (), raw.get("metadata") or {}
    given = raw.get("id")
    label = as_text(given) if given is not None else _label_of(values)
    if given is not None:
        values["id"] = given
    unclear = given is not None or label is None
    named = str(number) if label is None else label
    return Row(named, values, tuple(tags), metadata, unclear)


def _label_of(values: Mapping[str, Any]) -> str | None:
    if not all(isinstance(value, _SCALARS) for value in values.values()):
        return None
    label = ", ".join(map(as_text, values.values())).strip()
    return label if label and len(label) <= MAX_LABEL and label.isprintable() else None


def check_row(raw: Any) -> None:
    """Raise a validation error if a row is not a mapping of names to values."""
    if not isinstance(raw, dict):
        hint = "for one name with several values: vars: {city: [Oslo, Paris]}"
        raise problem("wrong-type", f"is {shown(raw)}, not a mapping of names to values", hint)
    for name in raw:
        check_name(name)
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "id": (_is_label, "text on one line, or a number"),
        "tags": (_are_tags, "a list of texts"),
        "metadata": (lambda given: isinstance(given, dict), "a mapping"),
    }
    for key, (fits, wanted) in checks.items():
        if raw.get(key) is not None and not fits(raw[key]):
            raise problem("wrong-type", f"is {shown(raw[key])}; it must be {wanted}", at=key)


def check_name(name: str) -> None:
    """Raise a validation error if it cannot be the name of a value."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} is not a name: letters, digits and underscores"
        raise problem("wrong-value", message, at=name)
    if name in JUDGE_VARIABLES:
        message = f"{name!r} is a variable of judges"
        raise problem("wrong-value", message, "choose another name", name)


def _are_tags(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(tag, str) and tag for tag in value)


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip()) and value == value.strip() and value.isprintable()
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rows(raw: Any) -> Any:
    """The rows of `vars`, checked one by one."""
    if isinstance(raw, dict):
        name, values = next(iter(raw.items()), ("", None))
        if len(raw) != 1 or not isinstance(values, list):
            hint = "for several names write rows: vars: [{city: Oslo, ice: true}, ...]"
            message = "is a mapping, but not one of a single name to a list of values"
            raise problem("wrong-type", message, hint)
        if name in OWN_KEYS:
            raise problem("wrong-value", f"{name!r} is a key of rows, not a name", at=name)
        check_name(name)
        raw = [{name: value} for value in values]
    if not isinstance(raw, list):
        hint = "for example vars: {city: [Oslo, Paris]}"
        raise problem("wrong-type", f"is {shown(raw)}, not a list of rows", hint)
    if not raw:
        raise problem("wrong-value", "is empty: without a row there is no case")
    if len(raw) > MAX_ROWS:
        message = f"has {len(raw):,} rows; the limit is {MAX_ROWS:,}"
        raise problem("too-large", message, "write them as cases of a JSONL file")
    for index, row in enumerate(raw):
        try:
            check_row(row)
        except (PydanticCustomError, ValidationError) as error:
            raise merge_errors([error], (index,)) from None
    return raw


Rows = Annotated[
    list[dict[str, Any]] | None,
    BeforeValidator(
        lambda raw: raw if raw is None else _rows(raw),
        json_schema_input_type=list[dict[str, Any]] | dict[str, list[Any]] | None,
    ),
]


class Parameters(Ruled):
    """The keys that make several cases of one."""

    rules: ClassVar[tuple[Rule, ...]] = (Excludes("vars", ("vars_from",)),)

    vars: Rows = None
    vars_from: Text | None = None


def substituted(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with every name replaced; a text that is only a name becomes the value itself."""
    if isinstance(value, str):
        return _substituted_text(value, values) if "{{" in value else value
    if isinstance(value, dict):
        return {key: substituted(item, values) for key, item in value.items()}
    return [substituted(item, values) for item in value] if isinstance(value, list) else value


def _substituted_text(text: str, values: Mapping[str, Any]) -> Any:
    whole = _PLACE.fullmatch(text)
    if whole and whole[1] in values:
        return values[whole[1]]

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "{{"
        return as_text(values[name]) if name in values else match[0]

    return _PLACE.sub(replaced, text)


def names_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every name between braces, with its path; judge variables in a prompt are not among them."""
    if isinstance(value, str):
        for match in _PLACE.finditer(value) if "{{" in value else ():
            name = match[1]
            if name is not None and not (name in JUDGE_VARIABLES and path[-1:] == ("prompt",)):
                yield path, name
    elif isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for step, item in items:
            yield from names_in(item, (*path, step))


def unknown_name(name: str, known: tuple[str, ...]) -> tuple[str, str]:
    """The message and the hint about a name that is not declared."""
    hint = nearest(name, known) or f"declared: {', '.join(known)}"
    return f"{{{{{name}}}}} is not declared in 'vars'", f"{hint}; '{{{{{{{{' is a literal '{{{{'"
