"""A project in a folder with the real command in it, and an agent on loopback to ask."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, closing, contextmanager
from pathlib import Path
from typing import Any

import click.testing
import yaml
from aiohttp import web

import preloaded_command
from assay.cli.app import app
from timeouts import WAIT_SECONDS
from unit.provider_server import Answer, ProviderServer

ASSAY = str(Path(sys.executable).with_name("assay"))

NOTHING: Mapping[str, str] = {}
Reply = Callable[[dict[str, Any]], dict[str, Any]]
Process = subprocess.Popen[str] | preloaded_command.Process


class Project:
    """Files in a folder, and commands that run there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def write(self, name: str, content: Any) -> Path:
        """A file: text as it is, all else as JSON or YAML."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            dump = yaml.safe_dump if file.suffix == ".yaml" else json.dumps
            content = dump(content)
        file.write_text(content, encoding="utf-8")
        return file

    def start(self, *arguments: str, env: Mapping[str, str] = NOTHING) -> preloaded_command.Process:
        """The command at work; the caller waits for it."""
        return preloaded_command.Process(arguments, self.root, environment(env))

    def start_anew(
        self, *arguments: str, env: Mapping[str, str] = NOTHING
    ) -> subprocess.Popen[str]:
        """The same from the start of Python on."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [ASSAY, *arguments],
            cwd=self.root,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def run(
        self, *arguments: str, code: int = 0, env: Mapping[str, str] = NOTHING
    ) -> subprocess.CompletedProcess[str]:
        """The command from start to end, in a process of its own."""
        done = preloaded_command.assay(*arguments, cwd=self.root, env=environment(env))
        return fit(done, code)

    def call(self, *arguments: str, code: int | None = 0) -> click.testing.Result:
        """The command within this process, which is quicker; any exit code fits None."""
        with chdir(self.root):
            done = click.testing.CliRunner().invoke(app, arguments, prog_name="assay")
        assert code is None or done.exit_code == code, (
            f"{done.exit_code}: {done.output}{done.exception!r}"
        )
        return done

    def document(self, *arguments: str, code: int = 0) -> str:
        """What `assay run --json` prints in this process, with times and ids taken out."""
        return normal(self.call("run", *arguments, "--json", code=code).stdout)

    def result_files(self, run_id: str) -> dict[str, str]:
        """The result files of a run by their names, with times and ids taken out."""
        folder = self.root / ".assay" / "runs" / run_id
        files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
        return {file.name: normal(file.read_text()) for file in files}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database has, read by a stranger."""
        with closing(sqlite3.connect(self.root / ".assay" / "assay.db")) as connection:
            return connection.execute(query).fetchall()

    def finished(self) -> set[tuple[str, int]]:
        """The trials of the newest run that are recorded for good."""
        newest = "(SELECT max(id) FROM run)"
        return set(
            self.rows(f"SELECT case_id, repeat FROM trial WHERE final AND run_id = {newest}")
        )

    def runs(self) -> list[tuple[str, str]]:
        """Ids and states of all runs, oldest first."""
        return [(i, s) for i, s in self.rows("SELECT id, status FROM run ORDER BY id")]


def environment(more: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """Ours, without what would change a run."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "ASSAY_"))}
    return {**kept, **more}


def ended(process: Process, code: int | None = None) -> subprocess.CompletedProcess[str]:
    """How a command ended; there is never a traceback."""
    with process:
        try:
            out, err = process.communicate(timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode is not None
    return fit(subprocess.CompletedProcess(process.args, process.returncode, out, err), code)


def fit(
    done: subprocess.CompletedProcess[str], code: int | None = None
) -> subprocess.CompletedProcess[str]:
    assert "Traceback" not in done.stderr, done.stderr
    assert code is None or done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done


_CHANGING = re.compile(
    r'"(runId|timestamp)":"[^"]*"|"(durationMs|totalDurationMs)":[-+.0-9e]+|"(candidate)":"[^"]*"'
)


def normal(document: str) -> str:
    """A document byte for byte, apart from times and ids."""
    return _CHANGING.sub(lambda match: f'"{match[1] or match[2] or match[3]}":0', document)


def cases_of(document: str) -> dict[str, dict[str, Any]]:
    """The cases of all suites of a document by their ids, in their order."""
    return {case["id"]: case for suite in json.loads(document)["suites"] for case in suite["cases"]}


def outcomes(document: str) -> dict[str, str]:
    return {key: case["details"]["outcome"] for key, case in cases_of(document).items()}


class Agent:
    """An agent on loopback: what it answers can be changed between runs, and who asks is noted."""

    def __init__(self) -> None:
        self.reply: Reply = lambda body: {"response": str(body["message"]), "toolCalls": []}
        #: Is called with the number of every request, before it is answered.
        self.arrived: Callable[[int], None] = lambda number: None
        #: Answers in place of `reply` when set.
        self.answer: Answer | None = None
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._answered = threading.Event()

    def reset(self) -> None:
        url = self.url
        self.__init__()  # type: ignore[misc]
        self.url = url

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if await request.read() else {}
        self.seen.append(body)
        self.headers.append(dict(request.headers))
        self.arrived(len(self.seen))
        self._answered.clear()
        try:
            if self.answer is not None:
                return await self.answer(request)
            return web.json_response(self.reply(body))
        finally:
            self._answered.set()

    def await_idle(self) -> None:
        """Wait until the newest request has its answer."""
        assert self._answered.wait(WAIT_SECONDS)


class Gate:
    """An answer that is held back until the test opens the gate."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.reached.set()
        await asyncio.to_thread(self._open.wait, WAIT_SECONDS)
        return web.json_response({"response": (await request.json())["message"], "toolCalls": []})

    def await_reached(self) -> None:
        assert self.reached.wait(WAIT_SECONDS)

    def open(self) -> None:
        self._open.set()


@contextmanager
def serving() -> Iterator[Agent]:
    agent = Agent()
    with ProviderServer(agent) as server:
        agent.url = server.url
        yield agent
