"""What providers of chat models share: settings, and messages as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from assay.errors import TargetError, UsageError
from assay.model.message import ContentPart, Message
from assay.model.observation import Usage
from assay.model.target import Need, Price, TargetSpec
from assay.ports import Request
from assay.targets.address import is_address
from assay.targets.functions import ToolFunctions
from assay.targets.prices import cost
from assay.targets.tools import ToolDefinition, Tools
from assay.wire.fields import AtLeastOne, Empty, Json, Number, Positive, Rate, Text
from assay.wire.validation_errors import problem

if TYPE_CHECKING:
    from assay.targets.http_client import HttpClient


def _address(value: str) -> str:
    if not is_address(value):
        # There may be a password before the last @, and a key in the query.
        shown = value.rpartition("@")[2].partition("?")[0]
        raise problem("wrong-value", f"{shown!r} is not the address of a server", "https://host/v1")
    return value.rstrip("/")


def _sendable(value: SecretStr) -> SecretStr:
    """The value without surrounding space, such as the newline at the end of a key file."""
    text = value.get_secret_value().strip()
    if not text.isprintable():
        raise problem("wrong-value", "it has a character that no HTTP header may have")
    return SecretStr(text)


Address = Annotated[Text, AfterValidator(_address)]
Secret = Annotated[SecretStr, AfterValidator(_sendable)]


#: Headers that carry a key in place of `api_key`.
_KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})


class ChatTarget(TargetSpec):
    """A chat model behind HTTP. A setting that is not set is not sent: the provider's default."""

    inline_key: ClassVar[str] = "model"

    model: Text
    base_url: Address
    api_key: Secret | None = None
    temperature: Annotated[Number, Field(ge=0)] | None = None
    top_p: Rate | None = None
    max_tokens: AtLeastOne | None = None
    timeout_seconds: Positive | None = None
    headers: dict[str, Secret] = Empty(dict)
    tools: Tools = ()
    tool_timeout_seconds: Positive = 30.0
    extra_body: dict[str, Json] = Empty(dict)
    prices: dict[str, Price] = Empty(dict)

    @property
    def label(self) -> str:
        return self.name or f"{self.provider}:{self.model}"

    def needs(self) -> Iterator[Need]:
        yield Need("address", self.base_url)
        # An empty key is what CI systems set for a secret that does not exist.
        key = self.api_key is not None and self.api_key.get_secret_value() != ""
        given = key or not _KEY_HEADERS.isdisjoint(map(str.lower, self.headers))
        # A self-hosted server may need no key.
        if given or self.base_url == type(self).model_fields["base_url"].default:
            yield Need("key", self.key_variable, given=given)

    @property
    def calls_functions(self) -> bool:
        return any(isinstance(tool, str) for tool in self.tools)

    def price_of(self, usage: Usage) -> float | None:
        return cost(self.model, usage, self.prices)

    def functions(self) -> ToolFunctions:
        """The functions under `tools`; raises UsageError if one cannot be used."""
        # The functions are imported here, which checking the settings must not do.
        named = [str(tool) for tool in self.tools if isinstance(tool, str)]
        found = ToolFunctions(named, self.tool_timeout_seconds)
        names = [tool.name for tool in (*self.definitions, *found.definitions)]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise UsageError(f"{self.label}: the tool {twice!r} is defined twice")
        return found

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool for tool in self.tools if not isinstance(tool, str))

    def client(self, headers: Mapping[str, str]) -> HttpClient:
        """A client with the provider's headers, overridden by the user's."""
        # aiohttp is slow to import, and not needed to check settings.
        from assay.targets.http_client import HttpClient

        own = {name: value.get_secret_value() for name, value in self.headers.items()}
        secrets = [word for value in own.values() for word in value.split()]
        if self.api_key:
            secrets.append(self.api_key.get_secret_value())
        return HttpClient({**headers, **own}, timeout=self.timeout_seconds, secrets=secrets)

    def sampling(self, *more: str) -> dict[str, Any]:
        """The settings that are sent under their own names, if they are set."""
        names = ("temperature", "top_p", "max_tokens", *more)
        values = ((name, getattr(self, name)) for name in names)
        return {name: value for name, value in values if value is not None}


def question(request: Request) -> str:
    """The question: the text of all user messages, with the content of their files."""
    return "\n".join(text_of(message) for message in request.messages if message.role == "user")


def text_of(message: Message) -> str:
    """The text of a message, with the content of its files."""
    if isinstance(message.content, tuple):
        return "\n\n".join(_part(part) for part in message.content)
    return message.text


def _part(part: ContentPart) -> str:
    if part.type == "text":
        return part.value
    if part.path is None:
        raise TargetError(f"the file {part.value!r} of the input was not looked up")
    try:
        return f"File {part.value}:\n{part.path.read_text('utf-8')}"
    except UnicodeDecodeError:
        raise TargetError(f"the file {part.value!r} of the input is not UTF-8 text") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TargetError(
            f"the file {part.value!r} of the input cannot be read: {reason}"
        ) from None
