"""Stubs: the results of tools, written in a case in place of the tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WrapValidator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.model.predicates import Predicate, check_args
from assay.model.values import same
from assay.problems import Problem
from assay.wire.document import DocPath
from assay.wire.fields import AtLeastOne, Json, Number, Text
from assay.wire.key_names import Key
from assay.wire.rules import Excludes, NeedsOne, Rule, Ruled

#: How many replies of a model a case allows by default.
DEFAULT_MAX_TURNS = 5


class _ArgumentsSchema:
    """The schema of arguments: a mapping of them is never a condition, what it holds may be."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        value = handler(core)
        mapping = {"additionalProperties": value}
        return {"if": {"type": "object"}, "then": mapping, "else": value}


class StubEntry(Ruled):
    """What a tool returns to the calls with some arguments, or how it fails."""

    rules: ClassVar[tuple[Rule, ...]] = (
        NeedsOne(("result", "error"), "a stub needs 'result' or 'error'"),
        Excludes("error", ("result",)),
    )

    args: Annotated[
        Json,
        BeforeValidator(check_args, json_schema_input_type=Predicate),
        _ArgumentsSchema(),
    ] = Key(None, aliases=("input",))
    result: Json = None
    error: Text | None = None
    delay_ms: Annotated[Number, Field(ge=0)] | None = Key(None, aliases=("delayMs",))
    times: AtLeastOne | None = None

    @property
    def answers_all(self) -> bool:
        """Does it answer every call, so that no later entry does?"""
        return self.times is None and self.args in (None, {}, "any")


_KEYS = (*StubEntry.model_fields, *StubEntry.key_names.aliases)


def is_entries(raw: Any) -> bool:
    """Is it a list of stub entries? Any other value is itself the result."""
    if not isinstance(raw, list) or not raw or not all(isinstance(item, dict) for item in raw):
        return False
    return any(key in item for item in raw for key in _KEYS)


class _StubSchema:
    """The schema of a stub: any value, but entries if it looks like these."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        entry = {"anyOf": [{"required": [key]} for key in _KEYS]}
        entries = {"type": "array", "items": {"type": "object"}, "contains": entry}
        return {"if": entries, "then": handler(core)}


def _entries(raw: Any, handler: Any) -> Any:
    if not is_entries(raw):
        return raw
    return [entry.model_dump(exclude_unset=True) for entry in handler(raw)]


#: The results by tool, as JSON: a stub that is not a list of entries is the result itself.
Stubs = dict[str, Annotated[list[StubEntry], WrapValidator(_entries), _StubSchema()]]


def entries_of(stub: Any) -> list[StubEntry]:
    """The entries of a checked stub."""
    if is_entries(stub):
        return [StubEntry.model_validate(entry) for entry in stub]
    return [StubEntry(result=stub)]


def unreachable_stubs(
    owner: str, stubs: Mapping[str, Any], place_of: Callable[[DocPath], tuple[str, int, int]]
) -> Iterator[Problem]:
    """A warning for each stub entry that never answers, as an earlier one answers all its calls.

    `place_of` finds the file, the line and the column of a path in what the stubs belong to.
    """
    for tool, stub in stubs.items():
        entries = entries_of(stub)
        for index, entry in enumerate(entries):
            before = next((n for n in range(index) if _covers(entries[n], entry)), None)
            if before is not None:
                message = (
                    f"{owner}: this stub of {tool!r} is never used: "
                    f"entry {before + 1} answers all of its calls"
                )
                hint = "put it first, or limit the other one with 'args' or 'times'"
                place = place_of(("stubs", tool, index))
                yield Problem(*place, "warning", "unreachable-stub", message, hint)


def _covers(first: StubEntry, later: StubEntry) -> bool:
    return first.answers_all or (first.times is None and same(first.args, later.args))
