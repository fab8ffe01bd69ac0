"""Validates a document against a wire shape: every fault becomes a Problem with its position."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeVar

from pydantic import ValidationError

from assay.errors import nearest
from assay.problems import MAX_PROBLEMS, Problem
from assay.text import count
from assay.wire.document import DocPath, Document
from assay.wire.key_names import ALIASES
from assay.wire.shape import Shape
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import shown

S = TypeVar("S", bound=Shape)
#: How a message names what is at the empty path.
WHOLE = "the document"


def check(
    shape: type[S], document: Document, path: DocPath, raw: Any, context: ValidationContext
) -> tuple[S | None, list[Problem]]:
    """Validate `raw`, the value at `path`; the shape is None when there are errors."""
    checked: S | None = None
    problems: list[Problem] = []
    try:
        checked = shape.__pydantic_validator__.validate_python(raw, context=context)
        if not context.notes:
            return checked, problems
    except ValidationError as error:
        faults = error.errors(include_url=False)
        own = (fault for fault in faults if not _follows_from_another(fault))
        problems = [_problem(document, path, f, shape) for f in islice(own, MAX_PROBLEMS + 1)]
    # Errors first; of very many notes, only as many as are reported need a position.
    notes = sorted(context.notes, key=lambda note: note.severity)[: MAX_PROBLEMS + 1]
    paths = document.paths_of((note.container for note in notes), path)
    for note in notes:
        where = (*paths.get(id(note.container), path), note.key)
        line, column = document.position(where, key=True)
        problems.append(
            Problem(document.file, line, column, note.severity, note.code, note.message, note.hint)
        )
        if note.severity == "error":
            checked = None
    context.notes.clear()
    problems.sort(key=lambda p: (p.line, p.column))
    return checked, problems


def written_path(
    document: Document, base: DocPath, steps: Sequence[str | int], shape: type[Shape]
) -> DocPath:
    """The path of a part of the shape at `base`, in the author's spelling of the keys."""
    data = document.data
    for step in base:
        data = _child(data, step)
    result = list(base)
    for depth, step in enumerate(steps):
        if isinstance(data, list) and isinstance(step, str) and step.isdecimal():
            step = int(step)
        elif isinstance(data, dict) and step not in data:
            aliases = shape.key_names.names(str(step)) if depth == 0 else ALIASES.get(str(step), ())
            step = next((alias for alias in aliases if alias in data), step)
        result.append(step)
        data = _child(data, step)
    return tuple(result)


def _child(data: Any, step: str | int) -> Any:
    try:
        return data[step]
    except (KeyError, IndexError, TypeError):
        return None


def _follows_from_another(fault: Any) -> bool:
    """pydantic also reports a list as too short if its items are invalid, which it reports too."""
    return bool(fault["type"] == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"])


def _problem(document: Document, base: DocPath, fault: Any, shape: type[Shape]) -> Problem:
    steps = fault["loc"]
    path = written_path(document, base, steps, shape)
    line, column = document.position(path)
    code, message, hint = _explain(fault, path)
    if fault["type"] in _LISTS:
        hint = _listed(fault["input"], quotes=not document.file.endswith((".yaml", ".yml")))
    if fault["type"] == "missing" and len(steps) == 1:
        message = missing(shape, steps[0])
    return Problem(document.file, line, column, "error", code, message, hint)


def _explain(fault: Any, path: DocPath) -> tuple[str, str, str]:
    """The slug, message and hint for a pydantic error."""
    kind, found, context = fault["type"], fault["input"], fault.get("ctx", {})
    name = _name(path)
    if kind == "assay":
        text = context["text"]
        joined = f"{name} {text}" if text.startswith(_VERBS) else f"{name}: {text}"
        return context["slug"], joined, context["hint"]
    if kind == "missing":
        return "missing-key", f"the key {path[-1]!r} is missing", ""
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return "unknown-key", f"the key {path[-1]!r} is not known here", ""
    if kind == "literal_error":
        allowed = [
            word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")
        ]
        message = f"{name} is {shown(found)}; it must be one of {', '.join(allowed)}"
        return "wrong-value", message, nearest(found, allowed) if isinstance(found, str) else ""
    if kind in _TYPES:
        hint = (
            "put it in quotes" if kind == "string_type" and isinstance(found, (int, float)) else ""
        )
        return "wrong-type", f"{name} is {shown(found)}; it must be {_TYPES[kind]}", hint
    if kind in _RULES:
        items = context.get("min_length") or context.get("max_length") or 0
        rule = _RULES[kind].format(**context, items=count(items, "item"))
        return "wrong-value", f"{name} is {shown(found)}; it must {rule}", _share(fault)
    return "wrong-value", f"{name}: {fault['msg']}", ""


def _share(fault: Any) -> str:
    """A hint for a share that was written as a percentage; a 2 may as well be meant as 0.2."""
    found = fault["input"]
    if fault["type"] != "less_than_equal" or fault["ctx"]["le"] != 1 or not 10 <= found <= 100:
        return ""
    return f"did you mean {found / 100:g}?"


_LISTS = ("list_type", "tuple_type")


def _listed(found: Any, *, quotes: bool) -> str:
    """A hint for a value that should be in a list: the list to write."""
    if isinstance(found, dict):
        return "put it in a list, also if it is the only item"
    if not isinstance(found, str):
        return "" if found is None else f"write [{shown(found)}]"
    words = [word.strip() for word in found.split(",")]
    if not all(_WORD.fullmatch(word) and word.lower() not in _NOT_TEXT for word in words):
        words, quotes = [found], True
    items = [json.dumps(word, ensure_ascii=False) if quotes else word for word in words]
    items = items if len(found) <= _MAX_EXAMPLE else ["..."]
    return f"write [{', '.join(items)}]"


#: What YAML reads as text without quotes.
_WORD = re.compile(r"[^\W\d][\w /-]*")
_NOT_TEXT = ("true", "false", "null", "yes", "no", "on", "off")
_MAX_EXAMPLE = 60
#: A message that starts with one of these continues the name of the key.
_VERBS = ("is ", "has ", "names ", "belongs ")
_TYPES = {
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "float_type": "a number",
    "int_type": "a whole number",
}
_RULES = {
    "string_too_short": "not be empty",
    "string_pattern_mismatch": "not be empty",
    "too_short": "have at least {items}",
    "too_long": "have at most {items}",
    "finite_number": "be a finite number",
    "greater_than_equal": "be >= {ge:g}",
    "greater_than": "be > {gt:g}",
    "less_than_equal": "be <= {le:g}",
    "less_than": "be < {lt:g}",
}


def missing(shape: type[Shape], key: str) -> str:
    """The message for a missing key, with its aliases."""
    others = [name for name in shape.key_names.names(key) if name.replace("_", "") != key.lower()]
    also = f" (or {', '.join(map(repr, others))})" if others else ""
    return f"the key {key!r}{also} is missing"


def _name(path: DocPath) -> str:
    """How a message names the value at a path: 'weight', or 'expected[2]' for an item."""
    indexes = ""
    for step in reversed(path):
        if isinstance(step, str):
            return f"{step + indexes!r}"
        indexes = f"[{step}]{indexes}"
    return WHOLE if not indexes else f"the item {indexes}"
