"""`command`: a program is the agent; its answer is in a file or on stdout."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec.structs import replace
from pydantic import AfterValidator, Field, ValidationInfo

from assay.errors import EvalFileErrors, ObservationError, TargetError
from assay.model.observation import Observation
from assay.model.options import TIMEOUT_SECONDS
from assay.model.target import Need, TargetSpec
from assay.model.values import from_json
from assay.observations.reading import read
from assay.ports import Request, Target
from assay.process.child import FinishedProcess, Limits, run
from assay.settings import environment_of_child
from assay.targets.address import is_address
from assay.targets.template import Command, CommandOrAddress, Template
from assay.wire.fields import Empty, Positive, Text
from assay.wire.key_names import Key
from assay.wire.text_files import read_text
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import problem

#: A prefix of `cwd` that stands for the folder of the case's file.
EVAL_DIR = "{EVAL_DIR}"
#: A JSON object with any of these keys is a record; any other JSON is itself the answer.
_RECORD_KEYS = frozenset({"output_messages", "text", "response", "toolCalls"})


def _folder(value: str, info: ValidationInfo) -> str:
    context: ValidationContext | None = info.context
    if context is None or value.startswith(EVAL_DIR):
        return value
    return str(context.find_folder(value))


def _splittable(value: str) -> str:
    try:
        shlex.split(value)
    except ValueError as error:
        raise problem("wrong-value", f"{value!r} cannot be split: {error}") from None
    return value


class CommandTarget(TargetSpec):
    """Runs a program for every question, in a process group of its own and within limits."""

    inline_key: ClassVar[str] = "command"

    provider: Text = "command"
    command: Command = Key(aliases=("command_template",))
    cwd: Annotated[Text, AfterValidator(_folder), Field(validate_default=True)] = "."
    env: list[Text] = Empty(list)
    files_format: Annotated[Text, AfterValidator(_splittable)] = Key(
        "{path}", aliases=("attachments_format",)
    )
    timeout_seconds: Positive | None = None
    max_output_mb: Positive = 10.0
    healthcheck: CommandOrAddress | None = None

    @property
    def label(self) -> str:
        return self.name or f"command:{self.command[0]}"

    def needs(self) -> Iterator[Need]:
        program = self.command[0]
        if "{" not in program and not self.cwd.startswith(EVAL_DIR):
            # A path is relative to `cwd`, a bare name is looked up in PATH.
            path = os.path.join(self.cwd, program) if os.path.dirname(program) else program
            yield Need("program", path)

    def connect(self) -> Target:
        return _Command(self)


class _Command:
    def __init__(self, spec: CommandTarget) -> None:
        self.name = spec.label
        self._spec = spec
        self._template = Template(spec.command, spec.files_format)
        self._limits = Limits(spec.timeout_seconds, int(spec.max_output_mb * 1024 * 1024))
        #: The healthcheck serves all requests, so the timeout of no single one limits it.
        self._healthcheck_timeout = spec.timeout_seconds or TIMEOUT_SECONDS
        self._checkups: dict[asyncio.AbstractEventLoop, asyncio.Task[str]] = {}

    async def ask(self, request: Request) -> Observation:
        folder = self._folder(request)
        if fault := await self._checkup(folder):
            message = f"the healthcheck of {self.name} failed: {fault}"
            raise TargetError(message, unreachable=True)
        with tempfile.TemporaryDirectory(prefix="assay-", ignore_cleanup_errors=True) as temporary:
            output_file = Path(temporary) / "answer.json"
            filled = self._template.fill(request, str(output_file))
            done = await self._run(filled.argv, folder, filled.stdin, self._limits)
            if done.fault:
                unreachable = done.state in ("not_started", "timed_out")
                raise TargetError(_failure("the program", done), unreachable=unreachable)
            in_file = self._template.has("OUTPUT_FILE")
            answer = self._read_output(output_file) if in_file else _decode_stdout(done)
        seen = _observation(answer)
        return seen if seen.duration_ms is not None else seen.replace(duration_ms=done.duration_ms)

    async def close(self) -> None:
        task = self._checkups.pop(asyncio.get_running_loop(), None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _checkup(self, folder: str) -> str:
        """What the healthcheck found wrong; it runs once, for all requests."""
        if self._spec.healthcheck is None:
            return ""
        loop = asyncio.get_running_loop()
        if loop not in self._checkups:
            checkup = self._healthcheck(self._spec.healthcheck, folder)
            self._checkups[loop] = loop.create_task(checkup)
        # If this request is cancelled, the others still wait for the task.
        return await asyncio.shield(self._checkups[loop])

    async def _healthcheck(self, check: list[str], folder: str) -> str:
        if not is_address(check[0]):
            limits = replace(self._limits, timeout_seconds=self._healthcheck_timeout)
            done = await self._run(check, folder, b"", limits)
            return _failure(repr(shlex.join(check)), done) if done.fault else ""
        from assay.targets.http_client import HttpClient  # aiohttp is slow to import

        client = HttpClient({}, timeout=self._healthcheck_timeout)
        try:
            reply = await client.send("GET", check[0])
        except TargetError as error:
            return str(error)
        finally:
            await client.close()
        return "" if 200 <= reply.status < 300 else f"{reply.url} answered {reply.status}"

    async def _run(
        self, argv: list[str], folder: str, stdin: bytes, limits: Limits
    ) -> FinishedProcess:
        env = environment_of_child(self._spec.env)
        return await run(argv, stdin=stdin, cwd=folder, env=env, limits=limits)

    def _folder(self, request: Request) -> str:
        cwd = self._spec.cwd
        if not cwd.startswith(EVAL_DIR):
            return cwd
        folder = request.case.folder if request.case else os.getcwd()
        return os.path.join(folder, cwd.removeprefix(EVAL_DIR).lstrip("/\\"))

    def _read_output(self, file: Path) -> str:
        try:
            return read_text(file, "{OUTPUT_FILE}", self._limits.max_output)
        except EvalFileErrors as error:
            fault = error.problems[0]
            what = "was not written" if fault.code == "not-found" else f"is wrong: {fault.message}"
            raise TargetError(f"the program's output file {what}") from None


def _decode_stdout(done: FinishedProcess) -> str:
    try:
        return done.stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{error.reason} at byte {error.start}"
        raise TargetError(f"the program printed something that is not UTF-8: {message}") from None


def _observation(answer: str) -> Observation:
    """The answer as a record if it is one, else as text without trailing newlines."""
    if answer.lstrip().startswith("{"):
        try:
            record = from_json(answer)
            if not _RECORD_KEYS.isdisjoint(record):
                return read(record)
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
        except ObservationError as error:
            raise TargetError(f"the program's answer cannot be read: {error}") from None
    return read(answer.rstrip("\r\n"))


def _failure(program: str, done: FinishedProcess) -> str:
    """What went wrong, with the end of the program's stderr."""
    words = done.fault if done.state == "not_started" else f"{program} {done.fault}"
    return done.explained(words)
