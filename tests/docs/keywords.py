"""Writes src/assay/model/keywords.py: the keyword arguments of the Python interface, as types.

They come from the shapes of options, cases and evaluators, so that an editor completes what a file
accepts and mypy refuses what it does not.
"""

from __future__ import annotations

import ast
import keyword
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic.json_schema import models_json_schema

from assay.loaders import factories
from assay.model.case import Tier
from assay.model.evaluator import EvaluatorSpec, NegatableSpec
from assay.model.options import RunOptions
from assay.model.suite import CaseFile
from assay.registry import evaluators
from assay.wire.shape import Shape

FILE = Path(__file__).resolve().parents[2] / "src/assay/model/keywords.py"

HEAD = '''"""The keyword arguments of the Python interface, as types.

`make docs` writes this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from assay.model.case import Tier
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message

#: An evaluator: one that a function of `assay` made, a function, an entry as in eval files, or a
#: criterion in words.
Evaluator = EvaluatorSpec | Callable[..., Any] | Mapping[str, Any] | str
#: An input: a text, or messages.
Input = str | Sequence[Message | Mapping[str, Any]]
'''
#: Types that the schema does not have.
SPECIAL = {
    "input_messages": "Input",
    "expected_messages": "Any",
    "evaluators": "Sequence[Evaluator]",
}
#: The options that are parameters of `run`, as they take more than a name.
NAMED = ("target", "judge", "baseline")
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@cache
def definitions() -> dict[str, Any]:
    """The JSON Schemas of all shapes that have keywords, and of what they contain, by name."""
    shapes: list[type[Shape]] = [RunOptions, CaseFile, EvaluatorSpec, *evaluators.usable().values()]
    found: dict[str, Any] = models_json_schema([(each, "validation") for each in shapes])[1][
        "$defs"
    ]
    return found


def type_of(schema: Any, names: dict[str, Any]) -> str:
    """The Python type of what a JSON Schema accepts."""
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        named = names.get(schema["$ref"].rpartition("/")[2])
        return "Any" if named is None else type_of(named, names)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            parts = dict.fromkeys(type_of(part, names) for part in schema[word])
            return "Any" if "Any" in parts else " | ".join(parts)
    if schema.get("enum") == [*get_args(Tier)]:
        return "Tier"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]".replace("'", '"')
    if "const" in schema:
        return f"Literal[{schema['const']!r}]".replace("'", '"')
    kind = schema.get("type")
    if kind == "array":
        return f"Sequence[{type_of(schema.get('items', {}), names)}]"
    if kind == "object":
        return "Mapping[str, Any]"
    return SIMPLE.get(str(kind), "Any")


def keys_of(shape: type[Shape], left_out: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """The keyword arguments for the keys of a shape, with their types; aliases are included."""
    names = definitions()
    properties = names[shape.__name__]["properties"]
    special = {} if shape is RunOptions else SPECIAL
    for name in shape.model_fields:
        aliases = shape.key_names.names(name)
        if not {name, *aliases}.isdisjoint(left_out) or name in shape.key_names.legacy:
            continue
        written = special.get(name) or type_of(properties.get(name), names)
        spellings = [name, *aliases] if name.islower() else aliases
        yield from ((each, written) for each in spellings if not keyword.iskeyword(each))


def class_of(name: str, base: str, meaning: str, keys: Iterable[tuple[str, str]]) -> str:
    """A TypedDict of optional keys."""
    body = "".join(f"\n    {key}: {written}" for key, written in keys)
    return f'\n\nclass {name}({base}, total=False):\n    """{meaning}"""\n{body}\n'


def evaluator_class(kind: str) -> str:
    """The keywords of an evaluator, besides the parameters of its function."""
    cls: type[EvaluatorSpec] = evaluators.get(kind)
    code = getattr(factories, kind).__code__
    positional = code.co_varnames[: code.co_argcount]
    negatable = issubclass(cls, NegatableSpec)
    common = (NegatableSpec if negatable else EvaluatorSpec).model_fields
    name = "".join(word.capitalize() for word in kind.split("_")) + "Keys"
    base = "NegatableKeys" if negatable else "EvaluatorKeys"
    return class_of(name, base, f"The keys of `{kind}`.", keys_of(cls, [*positional, *common]))


def module() -> str:
    """The text of the module, before it is formatted."""
    own = "TypedDict"
    negate = [("negate", "bool")]
    return "".join(
        [
            HEAD,
            class_of("OptionKeys", own, "The options of a run.", keys_of(RunOptions, NAMED)),
            class_of("CaseKeys", own, "The keys of a case.", keys_of(CaseFile, ("id", "input"))),
            class_of("EvaluatorKeys", own, "What all have.", keys_of(EvaluatorSpec, ("type",))),
            class_of("NegatableKeys", "EvaluatorKeys", "What can be negated.", negate),
            # The other keys of `python` are the parameters of its function.
            *(evaluator_class(kind) for kind in sorted(evaluators) if kind != "python"),
        ]
    )


def is_fresh() -> bool:
    """Does the file say what the shapes say, however it is formatted?"""
    return ast.dump(ast.parse(FILE.read_text(encoding="utf-8"))) == ast.dump(ast.parse(module()))


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")
    subprocess.run(["ruff", "format", "--quiet", FILE], check=True)
