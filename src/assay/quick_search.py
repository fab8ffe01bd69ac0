"""Whether a pattern occurs in a text, as fast as a substring search."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_core import SchemaValidator, core_schema


def quick_search(pattern: str) -> Callable[[str | bytes], bool]:
    """A test whether a pattern occurs in UTF-8 text.

    It uses the Rust engine inside pydantic, which scans for the literals that a match begins with.
    """
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python
