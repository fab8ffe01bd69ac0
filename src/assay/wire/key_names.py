"""The keys of a shape: canonical names and aliases, in files and in JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, get_args

from pydantic import Field
from pydantic.fields import FieldInfo

from assay.errors import nearest
from assay.wire.validation_context import Note, ValidationContext
from assay.wire.validation_errors import shown


def Key(  # noqa: N802 - reads as part of the field's type
    default: Any = ...,
    *,
    aliases: tuple[str, ...] = (),
    mistaken: tuple[str, ...] = (),
    legacy: bool = False,
    **rules: Any,
) -> Any:
    """A field of a shape, with its aliases; a legacy field has no effect.

    `mistaken` are names that other tools use for it: not accepted, but the hint names the field.
    """
    if "default_factory" not in rules:
        rules["default"] = default
    spelled: Any = {"aliases": aliases, "mistaken": mistaken, "legacy": legacy}
    return Field(json_schema_extra=spelled, **rules)


#: canonical key -> every alias that any shape declares for it, to find the author's spelling
ALIASES: dict[str, list[str]] = {}


#: How many different lists of keys a shape caches.
MAX_CACHED = 100


class KeyNames:
    """The keys that a shape accepts: canonical names and aliases."""

    __slots__ = (
        "_known_renames",
        "_names",
        "aliases",
        "any_key",
        "known",
        "legacy",
        "mistaken",
        "nested",
    )

    def __init__(self, known: frozenset[str], *, any_key: bool = False) -> None:
        self.known, self.any_key = known, any_key
        self.aliases: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}
        self._known_renames: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self.legacy: set[str] = set()
        #: a name that other tools use -> the key to suggest for it
        self.mistaken: dict[str, str] = {}
        #: the key of a nested shape -> the key that the shape is the value of
        self.nested: dict[str, str] = {}

    @classmethod
    def of(cls, fields: Mapping[str, FieldInfo], *, any_key: bool) -> KeyNames:
        key_names = cls(frozenset(fields), any_key=any_key)
        for name, info in fields.items():
            for part in (info.annotation, *get_args(info.annotation)):
                inner = getattr(part, "key_names", None)
                if isinstance(inner, KeyNames):
                    for key in (*inner.known, *inner.aliases):
                        key_names.nested.setdefault(key, name)
            extra = info.json_schema_extra
            if isinstance(extra, dict):
                aliases: Any = extra.get("aliases", ())
                for alias in aliases:
                    key_names.add(alias, name)
                names: Any = extra.get("mistaken", ())
                # The last alias is the one that the documentation uses.
                key_names.mistaken |= dict.fromkeys(names, (name, *aliases)[-1])
                if extra.get("legacy"):
                    key_names.legacy.add(name)
        return key_names

    def add(self, alias: str, canonical: str) -> None:
        """Add an alias of a key."""
        self._known_renames.clear()
        self.aliases[alias] = canonical
        self._names.setdefault(canonical, []).append(alias)
        ALIASES.setdefault(canonical, []).append(alias)

    def canonical(self, raw: Any, context: ValidationContext | None) -> Any:
        """Rename aliases, and drop `x-` keys and `$schema`; other keys are noted."""
        if type(raw) is not dict or self.known.issuperset(raw):
            return raw
        aliases = self._known_renames.get(keys := tuple(raw))
        if aliases is None:
            return self._rename(raw, keys, context)
        result = raw.copy()
        for alias, canonical in aliases:
            result[canonical] = result.pop(alias)
        return result

    def _rename(
        self, raw: dict[str, Any], keys: tuple[str, ...], context: ValidationContext | None
    ) -> Any:
        known, aliases = self.known, self.aliases
        result: dict[str, Any] = {}
        unknown = 0
        for key, value in raw.items():
            if key in known:
                result[key] = value
            elif (canonical := aliases.get(key)) is not None:
                winner = self.effective_spelling(raw, canonical)
                if winner == key:
                    result[canonical] = value
                elif context is not None:
                    message = f"{key!r} is ignored because {winner!r} is given too"
                    hint = "keep one of the two"
                    context.notes.append(Note(raw, key, "warning", "ignored-alias", message, hint))
            elif key.startswith("x-") or key == "$schema":
                continue
            elif self.any_key or context is None:
                result[key] = value
            else:
                unknown += 1
                context.notes.append(self.unknown(raw, key, hinted=unknown < 100))
        # Most cases of a file have the same keys: cache the renames, if nothing else is to do.
        simple = all(key in known or key in aliases for key in raw)
        if simple and len(result) == len(raw) and len(self._known_renames) < MAX_CACHED:
            self._known_renames[keys] = [(key, aliases[key]) for key in keys if key not in known]
        return result

    def effective_spelling(self, raw: Mapping[str, Any], canonical: str) -> str:
        """The spelling of a key that counts in a mapping: the canonical one, or the first alias."""
        if canonical not in raw:
            for alias in self.names(canonical):
                if alias in raw:
                    return alias
        return canonical

    def names(self, canonical: str) -> list[str]:
        """The aliases of a key."""
        return self._names.get(canonical, [])

    def has_misspelling_of(self, raw: Mapping[str, Any], canonical: str) -> bool:
        """Whether the nearest known key of some unknown key is this one or an alias of it."""
        hints = [nearest(name, (name,)) for name in (canonical, *self.names(canonical))]
        unknown = (key for key in raw if key not in self.known and key not in self.aliases)
        return any(self.nearest(key) in hints for key in unknown)

    def nearest(self, key: str) -> str:
        """A hint with the key that was meant; empty when none is near."""
        if meant := self.mistaken.get(key.lower()):
            return f"did you mean {meant!r}?"
        return nearest(key, [*self.known, *self.aliases])

    def unknown(self, raw: object, key: str, *, hinted: bool = True) -> Note:
        """A note about an unknown key; without a hint after the first of many, as it takes time."""
        hint = ""
        if hinted:
            hint = f"it belongs under {self.nested[key]!r}" if key in self.nested else ""
            hint = hint or self.nearest(key)
            hint = hint or "known here: " + ", ".join(self.suggested_keys())
        return Note(
            raw, key, "error", "unknown-key", f"the key {shown(key)} is not known here", hint
        )

    def suggested_keys(self) -> list[str]:
        """The keys to suggest: no legacy ones, and no mere snake_case aliases."""
        other = {a for a, name in self.aliases.items() if a.replace("_", "") != name.lower()}
        return sorted((self.known | other) - self.legacy)

    def describe(self, body: dict[str, Any]) -> None:
        """Make a JSON Schema accept what `canonical` accepts."""
        body.pop("title", None)
        properties = body.setdefault("properties", {})
        for name in set(properties) - self.known:
            del properties[name]
        for shape in properties.values():
            for word in ("title", "aliases", "mistaken", "legacy"):
                shape.pop(word, None)
        body["patternProperties"] = {r"^(x-|\$schema$)": {}}
        required = set(body.pop("required", ()))
        for canonical in dict.fromkeys(self.aliases.values()):
            described = self.value_of(canonical, properties[canonical])
            if others := self._schema_aliases(canonical):
                body["allOf"] = [*body.get("allOf", ()), *described["allOf"]]
                properties.update((alias, {"deprecated": True}) for alias in others)
        for name in sorted(required):
            if self._schema_aliases(name):
                body["allOf"].append(self.written(name))
            else:
                body.setdefault("required", []).append(name)

    def _schema_aliases(self, canonical: str) -> list[str]:
        """The aliases of a key that are part of the JSON Schema."""
        return [] if _CANONICAL_ONLY.get() else self.names(canonical)

    def written(self, canonical: str) -> dict[str, Any]:
        """The JSON Schema of a mapping that has the key or an alias."""
        return _one_of((canonical, *self._schema_aliases(canonical)))

    def value_of(self, canonical: str, schema: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema of a mapping in which the value of the key, if present, fits a schema."""
        result: dict[str, Any] = {"properties": {canonical: schema}}
        earlier = [canonical]
        for alias in self._schema_aliases(canonical):
            fits = {"properties": {alias: schema}}
            # An ignored alias may have any value.
            result.setdefault("allOf", []).append({"if": _one_of(earlier), "else": fits})
            earlier.append(alias)
        return result


#: Whether JSON Schemas are generated without aliases.
_CANONICAL_ONLY: ContextVar[bool] = ContextVar("canonical_only", default=False)


@contextmanager
def without_aliases() -> Iterator[None]:
    """Generate JSON Schemas without aliases."""
    before = _CANONICAL_ONLY.set(True)
    try:
        yield
    finally:
        _CANONICAL_ONLY.reset(before)


def _one_of(keys: Sequence[str]) -> dict[str, Any]:
    choices = [{"required": [key]} for key in keys]
    return {"anyOf": choices} if len(choices) > 1 else {"required": [keys[0]]}
