"""TargetSpec: the settings of a target in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field, SecretStr

from assay.model.observation import Usage
from assay.wire.fields import Count, Number, Positive, Several, Text
from assay.wire.shape import Shape

Usd = Annotated[Number, Field(ge=0)]


class Price(Shape):
    """US dollars for a million tokens."""

    input: Usd
    output: Usd


class RateLimits(Shape):
    """Limits on the requests to a target; None means no limit here."""

    workers: Several | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    #: How many times it is asked again about a lost case; 0 if its calls have side effects.
    confirm: Count | None = None


class Need(NamedTuple):
    """Something that a target requires, and that can be checked before it is asked.

    A key is named by its environment variable; `given` is whether it is set.
    """

    kind: Literal["program", "address", "key"]
    what: str
    given: bool = True


class TargetSpec(RateLimits):
    """One entry under `targets`. Subclasses add their keys as fields, and `connect`.

    `connect()` returns a Target; it opens nothing until the target is asked.
    """

    # An invalid value may be, or contain, a secret.
    model_config = ConfigDict(hide_input_in_errors=True)

    #: The key for the text after the colon of an inline target: `openai:gpt-6-sol`.
    inline_key: ClassVar[str] = ""
    #: Its answers were recorded earlier. Large suites are then graded as a stream, so its target
    #: must implement `assay.engine.stream.Answers`.
    recorded: ClassVar[bool] = False
    #: The environment variable for the API key if it is not in the settings.
    key_variable: ClassVar[str] = ""

    name: Text = ""
    provider: Text

    @classmethod
    def inline(cls, provider: str, name: str) -> dict[str, Any] | None:
        """The settings of an inline name; None when it names another provider."""
        start, colon, setting = name.partition(":")
        if not colon or start != provider:
            return None
        return {cls.inline_key or "setting": setting} if setting else {}

    @property
    def label(self) -> str:
        """The name of the target in results."""
        return self.name or self.provider

    def needs(self) -> Iterator[Need]:
        """What `assay doctor` checks in addition to the settings."""
        return iter(())

    @property
    def calls_functions(self) -> bool:
        """Can its model call functions of the project? Over REST, only if a setting allows it."""
        return False

    def price_of(self, usage: Usage) -> float | None:
        """What an answer with this usage costs in US dollars; None if the price is not known."""
        return None

    @property
    def identity(self) -> str:
        """The settings that affect its answers: all but secrets, limits and names."""
        hidden = {"api_key", "headers", "prices", "name", "timeout_seconds"}
        hidden |= {"tool_timeout_seconds"}
        hidden |= RateLimits.model_fields.keys()
        return self.model_dump_json(exclude=hidden, warnings="none")

    @property
    def secrets(self) -> set[str]:
        """The values of its secret settings, and each word of them, as in `Bearer` and a token."""
        values = list(_secret_values(self.model_dump(warnings="none")))
        return {text for value in values for text in (value, *value.split())}


def _secret_values(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _secret_values(part)
