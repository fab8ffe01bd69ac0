"""JSON Schemas of authors: checked when loaded, and safe to validate any answer against.

Patterns use `assay.patterns`, and references stay inside the schema. A schema can still take time
exponential in its size, so every keyword checks the deadline. The library is imported with the
first schema: most files have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from assay.deadlines import check_deadline
from assay.errors import BadPattern
from assay.model.values import quoted
from assay.patterns import compile_pattern
from assay.redaction import cut
from assay.wire.validation_errors import problem

#: How many faults of one answer are reported.
MAX_FAULTS = 5


class AnswerSchema:
    """A compiled schema."""

    __slots__ = ("_validator",)

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def faults(self, value: Any) -> list[str]:
        """The first few faults of a value.

        May raise TimeoutError, RecursionError or DeadlineExceeded.
        """
        found = islice(self._validator.iter_errors(value), MAX_FAULTS)
        return [f"{_path(fault.absolute_path)}{_message(fault)}" for fault in found]


def answer_schema(schema: dict[str, Any] | bool) -> AnswerSchema:
    """Compile a schema; raises ValueError when it is invalid."""
    return _compile(json.dumps(schema))


def check_schema(schema: Any) -> Any:
    """Validate a field that has a schema."""
    try:
        answer_schema(schema)
    except ValueError as fault:
        raise problem("wrong-value", f"is not a valid JSON Schema: {fault}") from None
    return schema


def _message(fault: Any) -> str:
    """The message of the library, with the value and the rule as JSON: `null`, not `None`."""
    text: str = fault.message
    for value in (fault.instance, fault.validator_value):
        text = text.replace(repr(value), quoted(value), 1)
    return cut(text, 160, "both")


def _path(steps: Any) -> str:
    """`items[1].p: `, or nothing for the value itself."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"{path.removeprefix('.')}: " if path else ""


@lru_cache(maxsize=256)
def _compile(text: str) -> AnswerSchema:
    import jsonschema
    from jsonschema.exceptions import best_match
    from referencing import Registry

    schema = json.loads(text)
    dialect = _dialect(schema)
    meta = jsonschema.validators.validator_for(dialect.META_SCHEMA)
    checker = meta(dialect.META_SCHEMA, format_checker=_patterns_only())
    if fault := best_match(checker.iter_errors(schema)):
        raise ValueError(f"{_path(fault.absolute_path)}{_message(fault)}")
    if isinstance(schema, dict):
        # A reference to the root would find the dialect by its name, without our own keywords.
        schema.pop("$schema", None)
    registry: Registry[Any] = Registry()  # empty, and without retrieval
    validator = _safe_dialect(dialect)(schema, registry=registry)
    used = set(_keywords(*_root(dialect, schema), set()))
    if "$schema" in used:
        raise ValueError("'$schema' is for the whole schema, not for a part of it")
    if used >= {"patternProperties", "unevaluatedProperties"}:
        raise ValueError("'unevaluatedProperties' does not go together with 'patternProperties'")
    return AnswerSchema(validator)


def _dialect(schema: Any) -> Any:
    """The library's class for the draft of the schema; 2020-12 by default."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    if not isinstance(schema, dict) or "$schema" not in schema:
        return Draft202012Validator
    named = schema["$schema"]
    dialect = validator_for(schema, default=None) if isinstance(named, str) else None  # type: ignore[arg-type]
    if dialect is None:
        known = Draft202012Validator.META_SCHEMA["$id"]
        raise ValueError(f"'$schema' is {named!r}, which is not known, for example {known!r}")
    return dialect


def _patterns_only() -> Any:
    """A format checker for regular expressions only."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())

    @checker.checks("regex", raises=BadPattern)
    def compiles(pattern: object) -> bool:
        return not isinstance(pattern, str) or compile_pattern(pattern) is not None

    return checker


def _root(dialect: Any, schema: Any) -> tuple[Any, Any]:
    from referencing import Registry
    from referencing.jsonschema import specification_with

    resource = specification_with(dialect.ID_OF(dialect.META_SCHEMA)).create_resource(schema)
    registry: Registry[Any] = Registry()
    return resource, registry.resolver_with_root(resource)


def _keywords(resource: Any, resolver: Any, seen: set[int]) -> Iterator[str]:
    """All keywords of a schema and its subschemas; references must stay inside it."""
    from referencing.exceptions import Unresolvable

    contents = resource.contents
    if id(contents) in seen:
        return
    seen.add(id(contents))
    parts = [(part, resolver.in_subresource(part)) for part in resource.subresources()]
    if isinstance(contents, dict):
        yield from contents
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(ref := contents.get(keyword), str):
                try:
                    found = resolver.lookup(ref)
                except Unresolvable:
                    raise ValueError(
                        f"{ref!r} is not defined in the schema, and references are not fetched"
                    ) from None
                other = type(resource)(found.contents, specification=resource._specification)
                parts.append((other, found.resolver))
    for part, part_resolver in parts:
        yield from _keywords(part, part_resolver, seen)


@lru_cache(maxsize=16)
def _safe_dialect(dialect: Any) -> Any:
    """The dialect with safe versions of the keywords that an answer could make slow."""
    from jsonschema import validators

    extend: Any = validators.extend
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    known = {**dialect.VALIDATORS, **keywords}
    return extend(dialect, {name: _checking(keyword) for name, keyword in known.items()})


def _checking(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def validate(validator: Any, rule: Any, instance: Any, schema: Any) -> Any:
        check_deadline()
        return keyword(validator, rule, instance, schema)

    return validate


def _validation_error(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not compile_pattern(pattern).search(instance):
        yield _validation_error(f"{cut(instance, 60)!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, rules: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, rule in rules.items():
            search = compile_pattern(pattern).search
            for key, value in instance.items():
                if search(key):
                    yield from validator.descend(value, rule, path=key, schema_path=pattern)


def _additional_properties(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict) or rule is True:
        return
    known = schema.get("properties", {})
    patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    others = [
        key for key in instance if key not in known and not any(p.search(key) for p in patterns)
    ]
    if isinstance(rule, dict):
        for key in others:
            yield from validator.descend(instance[key], rule, path=key)
    elif others:
        yield _validation_error(f"{', '.join(map(repr, others))} must not be there")


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list):
        seen: set[str] = set()
        for index, item in enumerate(instance):
            check_deadline()
            text = json.dumps(_normalized(item), sort_keys=True)
            if text in seen:
                yield _validation_error(f"the item [{index}] is there twice")
                return
            seen.add(text)


def _normalized(value: Any) -> Any:
    """Make equal numbers alike: 1.0 becomes 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _normalized(item) for key, item in value.items()}
    return [_normalized(item) for item in value] if isinstance(value, list) else value
