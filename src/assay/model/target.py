"""TargetSpec: the settings of a target, as a configuration writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field, SecretStr

from assay.model.fields import Number, Positive, Several, Text
from assay.model.shape import Shape

Usd = Annotated[Number, Field(ge=0)]


class Price(Shape):
    """US dollars for a million tokens."""

    input: Usd
    output: Usd


class RateLimits(Shape):
    """How much a target is asked, at once and in a minute; None is not limited here."""

    workers: Several | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None


class Need(NamedTuple):
    """What a target cannot work without, as far as it can be looked at before it is asked.

    A key is named by its environment variable; `given` says whether it is there.
    """

    kind: Literal["program", "address", "key"]
    what: str
    given: bool = True


class TargetSpec(RateLimits):
    """One entry under `targets`. Subclasses add their keys as fields, and `connect`.

    `connect()` returns a Target; it opens nothing until the target is asked.
    """

    # A wrong setting may be, or hold, a secret.
    model_config = ConfigDict(hide_input_in_errors=True)

    #: The key that the text after the colon of an inline target gives: `openai:gpt-4`.
    inline_key: ClassVar[str] = ""
    #: Its answers were recorded before: nobody is called. Large suites are then graded as a
    #: stream, so that its target has all of `assay.engine.stream.Answers`.
    recorded: ClassVar[bool] = False
    #: The environment variable with the API key when the settings give none.
    key_variable: ClassVar[str] = ""

    name: Text = ""
    provider: Text

    @classmethod
    def inline(cls, provider: str, name: str) -> dict[str, Any] | None:
        """The settings that an inline name gives; None when it does not name this provider."""
        start, colon, setting = name.partition(":")
        if not colon or start != provider:
            return None
        return {cls.inline_key or "setting": setting} if setting else {}

    @property
    def label(self) -> str:
        """What results call the target."""
        return self.name or self.provider

    def needs(self) -> Iterator[Need]:
        """What `assay doctor` looks for; the settings themselves are right."""
        return iter(())

    @property
    def identity(self) -> str:
        """All settings but secrets and limits: what tells its answers from those of another."""
        hidden = {"api_key", "headers", "prices", "name", "timeout_seconds"}
        hidden |= RateLimits.model_fields.keys()
        return self.model_dump_json(exclude=hidden, warnings="none")

    @property
    def secrets(self) -> set[str]:
        """The values of its secret settings, and the words of each: `Bearer` and a token."""
        values = list(_secret_values(self.model_dump(warnings="none")))
        return {text for value in values for text in (value, *value.split())}


def _secret_values(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _secret_values(part)
