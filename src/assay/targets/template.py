"""The command of a program, with placeholders for the question: parsed, checked, filled in.

No shell is involved. A text is split as a shell would split it, and placeholders are filled in
after that, so whatever a question contains stays inside its argument.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field

from assay.errors import nearest
from assay.model.message import Message
from assay.ports import Request
from assay.targets.address import is_address
from assay.targets.chat import text_of
from assay.wire.fields import NonBlankText, Text
from assay.wire.validation_errors import problem, shown

PLACEHOLDERS = ("PROMPT", "EVAL_ID", "ATTEMPT", "FILES", "GUIDELINES", "OUTPUT_FILE")
_PLACEHOLDER = re.compile(r"\{([A-Z][A-Z_]*)\}")
_FILE_PLACEHOLDER = re.compile(r"\{(path|basename)\}")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""")
_FOR_A_SHELL = re.compile(r"[|&;<>`]+|\$\(|\$\{?\w+")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "cmd", "powershell", "pwsh"})
_SCRIPT_FLAG = re.compile(r"-\w*c|/c|-command", re.IGNORECASE)


def _split(raw: Any) -> Any:
    if not isinstance(raw, str):
        if isinstance(raw, list):
            return raw
        raise problem("wrong-type", f"is {shown(raw)}, neither a list of arguments nor text")
    try:
        words = shlex.split(raw)
    except ValueError as error:
        message = f"{shown(raw)} cannot be split into arguments: {str(error).lower()}"
        raise problem("wrong-value", message) from None
    if not words:
        raise problem("wrong-value", "the command is empty")
    if found := _FOR_A_SHELL.search(_QUOTED.sub(" ", raw)):
        hint = "put it in quotes, or call a script"
        raise problem(
            "wrong-value", f"{found[0]!r} is shell syntax, but commands run without a shell", hint
        )
    return words


def _split_or_address(raw: Any) -> Any:
    return [raw] if isinstance(raw, str) and is_address(raw) else _split(raw)


def _check_placeholders(words: list[str]) -> list[str]:
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in PLACEHOLDERS:
                known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                hint = nearest(name, PLACEHOLDERS) or f"known: {known}"
                raise problem("wrong-value", f"the placeholder {{{name}}} is not known", hint)
    program = os.path.basename(words[0]).lower().removesuffix(".exe")
    for flag, script in pairwise(words) if program in _SHELLS else ():
        if _SCRIPT_FLAG.fullmatch(flag) and (place := _PLACEHOLDER.search(script)):
            message = f"the shell would execute the value of {place[0]}"
            hint = f"give it as an argument: [sh, -c, 'agent \"$1\"', sh, '{place[0]}']"
            raise problem("wrong-value", message, hint)
    return words


def _refuse_placeholders(words: list[str]) -> list[str]:
    if place := next(filter(None, map(_PLACEHOLDER.search, words)), None):
        raise problem("wrong-value", f"{place[0]} has no value before the first question")
    return words


_Listed = Annotated[list[Text], Field(min_length=1)]
Command = Annotated[
    _Listed,
    BeforeValidator(_split, json_schema_input_type=NonBlankText | _Listed),
    AfterValidator(_check_placeholders),
]
CommandOrAddress = Annotated[
    _Listed,
    BeforeValidator(_split_or_address, json_schema_input_type=NonBlankText | _Listed),
    AfterValidator(_refuse_placeholders),
]


class Filled(msgspec.Struct, frozen=True):
    """A command to run; the prompt is on stdin if it is not in an argument."""

    argv: list[str]
    stdin: bytes


class Template:
    """A command to be filled in for each question."""

    def __init__(self, command: Sequence[str], files_format: str) -> None:
        self._command, self._files_format = command, shlex.split(files_format)
        self._places = {name for word in command for name in _PLACEHOLDER.findall(word)}

    def has(self, place: str) -> bool:
        return place in self._places

    def fill(self, request: Request, output_file: str) -> Filled:
        prompt, files = self._prompt(request.messages), self._files(request.messages)
        system = [message.text for message in request.messages if message.role == "system"]
        values = {
            "PROMPT": prompt,
            "EVAL_ID": request.case.id if request.case else "",
            "ATTEMPT": str(request.repeat),
            "FILES": " ".join(files),
            "GUIDELINES": "\n\n".join(system),
            "OUTPUT_FILE": output_file,
        }
        argv: list[str] = []
        for word in self._command:
            if word == "{FILES}":
                argv += files
            else:
                argv.append(_PLACEHOLDER.sub(lambda match: values[match[1]], word))
        return Filled(argv, b"" if self.has("PROMPT") else prompt.encode())

    def _prompt(self, messages: Sequence[Message]) -> str:
        """The messages as one text, each under its role unless all are the user's."""
        included = [m for m in messages if m.role != "system" or not self.has("GUIDELINES")]
        texts = [self._text(message) for message in included]
        if all(message.role == "user" for message in included):
            return "\n".join(texts)
        named = zip(included, texts, strict=True)
        return "\n\n".join(f"@[{message.role.capitalize()}]:\n{text}" for message, text in named)

    def _text(self, message: Message) -> str:
        if message.tool_calls:
            return json.dumps(message.to_dict(), ensure_ascii=False)
        # A program that gets the paths of files reads them itself.
        return message.text if self.has("FILES") or message.role == "tool" else text_of(message)

    def _files(self, messages: Sequence[Message]) -> list[str]:
        """The arguments for the files of the messages, each file once."""
        parts = [p for m in messages if isinstance(m.content, tuple) for p in m.content]
        paths = [os.path.abspath(p.path or p.value) for p in parts if p.type == "file"]
        return [
            _fill_path(word, path) for path in dict.fromkeys(paths) for word in self._files_format
        ]


def _fill_path(word: str, path: str) -> str:
    values = {"path": path, "basename": os.path.basename(path)}
    return _FILE_PLACEHOLDER.sub(lambda match: values[match[1]], word)
