"""Programs as agents: how they are called, how they answer, and how they misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError

from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.ports import Request, Target
from assay.targets.command import CommandTarget
from timeouts import WAIT_SECONDS
from unit import provider_server as provider
from unit.process.test_child import all_die
from unit.provider_server import ProviderServer
from unit.target_calls import answer, answers, fault, file_part, in_file, request

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")

#: Prints its arguments and its input as JSON; that is not a record, and so is the answer.
TELL = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", dedent(code), *arguments]


def connected(code: str, *arguments: str, **settings: Any) -> Target:
    return CommandTarget(command=python(code, *arguments), **settings).connect()


def received(asked: Request, *arguments: str, **settings: Any) -> tuple[list[str], str]:
    """The arguments and the input that a program was given."""
    words, text = json.loads(answer(connected(TELL, *arguments, **settings), asked).response)
    return words, text


def wrote(text: str | bytes) -> Observation:
    """What is read from an output file with this content."""
    data = text if isinstance(text, bytes) else text.encode()
    code = f"import sys; open(sys.argv[1], 'wb').write({data!r}); print('not this')"
    return answer(connected(code, "{OUTPUT_FILE}"), request())


# How it is called


def test_every_place_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("data")
    parts = (file_part(tmp_path / "a b.txt", "a b.txt"),)
    messages = (Message("system", "Be kind"), Message("user", "Hi"), Message("user", parts))
    places = ["{PROMPT}", "--id={EVAL_ID}", "{ATTEMPT}", "{FILES}", "{GUIDELINES}"]
    words, text = received(request(messages=messages, repeat=1), *places)
    file = str(tmp_path / "a b.txt")
    assert words == ["Hi\na b.txt", "--id=one", "1", file, "Be kind"]
    assert text == ""


@pytest.mark.parametrize(
    "hostile",
    ["; rm -rf /", "$(id) `id` $HOME", "'\" \\", "{OUTPUT_FILE} {EVAL_ID}", "a\nb", "--help", "é"],
)
def test_a_question_stays_inside_its_argument(hostile: str) -> None:
    words, _ = received(request(hostile), "{PROMPT}", "<{PROMPT}>")
    assert words == [hostile, f"<{hostile}>"]


def test_a_text_is_split_into_arguments_before_it_is_filled_in() -> None:
    target = CommandTarget(command=f"{sys.executable} -c '{TELL}' \"{{PROMPT}}\" x{{PROMPT}}' y'")
    said = answer(target.connect(), request("a 'b' c")).response
    assert json.loads(said)[0] == ["a 'b' c", "xa 'b' c y"]


def test_the_prompt_is_on_stdin_when_no_argument_has_it() -> None:
    assert received(request("Hi"), "{EVAL_ID}") == (["one"], "Hi")


def test_files_are_given_in_the_format_that_is_set(tmp_path: Path) -> None:
    parts = tuple(file_part(tmp_path / name, name) for name in ("a.txt", "b c.txt", "a.txt"))
    asked = request(messages=(Message("user", parts),))
    words, _ = received(asked, "{FILES}", "{PROMPT}", files_format="--file {path} {basename}")
    first, second = str(tmp_path / "a.txt"), str(tmp_path / "b c.txt")
    assert words[:-1] == ["--file", first, "a.txt", "--file", second, "b c.txt"]
    assert received(request(), "{FILES}", "{PROMPT}")[0] == ["Hi"]
    assert received(asked, "<{FILES}>", "{PROMPT}")[0][0] == f"<{first} {second}>"


def test_files_are_in_the_prompt_unless_they_are_arguments(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("data")
    parts = (file_part(tmp_path / "a.txt", "a.txt"),)
    assert received(request(messages=(Message("user", parts),)))[1] == "File a.txt:\ndata"


def test_a_conversation_names_the_roles() -> None:
    call = Message("assistant", "Wait.", (ToolCall("look", {"at": 1}),))
    messages = (Message("system", "Be kind"), Message("user", "Hi"), call, Message("tool", "2"))
    prompt = received(request(messages=messages), "{PROMPT}")[0][0]
    assert prompt.startswith("@[System]:\nBe kind\n\n@[User]:\nHi\n\n@[Assistant]:\n{")
    assert prompt.endswith("\n\n@[Tool]:\n2")


def test_a_program_runs_in_its_folder_with_few_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "MINE"):
        monkeypatch.setenv(name, "set")
    code = "import json, os; print(json.dumps([os.getcwd(), sorted(os.environ)]))"
    target = connected(code, cwd=str(tmp_path), env=["MINE"])
    folder, names = json.loads(answer(target, request()).response)
    assert folder == os.path.realpath(tmp_path)
    assert "MINE" in names
    assert "OPENAI_API_KEY" not in names
    everything = answer(connected(code, env=["*"]), request())
    assert "OPENAI_API_KEY" in everything.response


def test_a_program_may_run_in_the_folder_of_the_eval_file(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    asked = request(locate=in_file(tmp_path / "suite.yaml"))
    for cwd, folder in (("{EVAL_DIR}", tmp_path), ("{EVAL_DIR}/bin", tmp_path / "bin")):
        target = connected("import os; print(os.getcwd())", cwd=cwd)
        assert answer(target, asked).response == os.path.realpath(folder)


# How it answers


def test_stdout_is_the_answer_without_its_line_break() -> None:
    seen = answer(connected("print('Hello\\n there')"), request())
    assert (seen.response, seen.tool_calls) == ("Hello\n there", None)
    assert (seen.duration_ms or 0) > 0


def test_a_record_on_stdout_is_read() -> None:
    record = {"response": "4", "toolCalls": [{"name": "add"}], "durationMs": 3}
    seen = answer(connected(f"print({json.dumps(record)!r})"), request())
    assert (seen.response, seen.tool_calls, seen.duration_ms) == ("4", (ToolCall("add"),), 3)


def test_the_output_file_is_read_and_stdout_is_not() -> None:
    assert wrote("Hello\n").response == "Hello"
    assert wrote(b"\xef\xbb\xbfHello").response == "Hello"
    assert wrote("").response == ""


def test_an_output_file_may_be_a_record() -> None:
    call = {"tool": "add", "input": {"a": 1}, "output": 4}
    message = {"role": "assistant", "content": "4", "tool_calls": [call]}
    measures = {"token_usage": {"input": 7, "output": 8}, "cost_usd": 0.5, "duration_ms": 11}
    seen = wrote(json.dumps({"output_messages": [message], "text": "unused", **measures}))
    assert (seen.response, seen.tool_calls) == ("4", (ToolCall("add", {"a": 1}, 4),))
    assert (seen.usage, seen.cost_usd, seen.duration_ms) == (Usage(7, 8), 0.5, 11)
    text = wrote(json.dumps({"text": "Hello", "cost_usd": 0.5}))
    assert (text.response, text.tool_calls, text.cost_usd) == ("Hello", None, 0.5)


@pytest.mark.parametrize("said", ['{"city": "Oslo"}', "[1, 2]", "{half", '{"text": ', "5", "{}"])
def test_any_other_json_is_itself_the_answer(said: str) -> None:
    assert wrote(said).response == said


# Faults


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit('no key')", "the program ended with exit code 1; its stderr ends with"),
        ("import sys; print('x' * 9999 + ' end', file=sys.stderr); sys.exit(2)", "xx end"),
        ("import os; os.kill(os.getpid(), 9)", "the program was killed by SIGKILL"),
        ("import os; os.write(1, b'caf\\xe9')", "not UTF-8: unexpected end of data at byte 3"),
        ("print('{\"text\": 5}')", "the program's answer cannot be read"),
        ("print('{\"output_messages\": [{}]}')", "the program's answer cannot be read"),
    ],
)
def test_a_program_that_fails_is_an_error(code: str, words: str) -> None:
    error = fault(connected(code), request())
    assert words in str(error)
    assert len(str(error)) < 500
    assert not error.retryable


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("pass", "the program's output file was not written"),
        ("import os, sys; os.mkdir(sys.argv[1])", "output file is wrong: this is a directory"),
        ("import os, sys; os.mkfifo(sys.argv[1])", "output file is wrong: this is a named pipe"),
        ("import sys; open(sys.argv[1], 'wb').write(b'\\xff')", "not valid UTF-8"),
        ("import sys; open(sys.argv[1], 'wb').write(b'x' * 2000)", "the limit is 1,048"),
    ],
)
def test_an_output_file_that_cannot_be_read_is_an_error(code: str, words: str) -> None:
    target = connected(code, "{OUTPUT_FILE}", max_output_mb=0.001)
    assert words in str(fault(target, request()))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-program-anywhere"], "'no-such-program-anywhere' was not found on PATH"),
        (["./missing.sh"], "the program './missing.sh' does not exist in the folder"),
        (["cat", "{PROMPT}\0"], "could not be started"),
    ],
)
def test_a_program_that_cannot_be_started_is_an_error(command: list[str], words: str) -> None:
    assert words in str(fault(CommandTarget(command=command).connect(), request()))


def test_a_missing_working_directory_is_an_error(tmp_path: Path) -> None:
    target = connected("pass", cwd=str(tmp_path / "missing"))
    assert "missing' does not exist" in str(fault(target, request()))


def test_a_question_that_is_too_long_for_an_argument_is_an_error() -> None:
    error = fault(connected("pass", "{PROMPT}"), request("x" * 3_000_000))
    assert "could not be started" in str(error)
    assert answer(connected(TELL), request("x" * 3_000_000)).response.endswith('x"]')


STUBBORN = """
    import os, signal, sys
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    {more}
    while True: signal.pause()
"""


@pytest.mark.parametrize("more", ["pass", "os.fork()", "os.fork() or os.fork()"])
def test_a_program_that_will_not_end_is_ended_with_all_it_started(more: str) -> None:
    marker = uuid.uuid4().hex
    target = connected(STUBBORN.format(more=more), marker, timeout_seconds=0.3)
    assert "took longer than 0.3 s and was stopped" in str(fault(target, request()))
    assert all_die(marker)


def test_processes_left_by_a_program_are_killed() -> None:
    marker = uuid.uuid4().hex
    code = "import os, signal\nif os.fork() == 0: signal.pause()\nprint('Hello')"
    assert answer(connected(code, marker), request()).response == "Hello"
    assert all_die(marker)


def test_a_program_that_writes_for_ever_is_ended() -> None:
    marker = uuid.uuid4().hex
    target = connected("while True: print('x' * 1000)", marker, max_output_mb=0.01)
    assert "wrote more than 10,485 bytes and was stopped" in str(fault(target, request()))
    assert all_die(marker)


def test_the_program_of_a_cancelled_request_is_killed(tmp_path: Path) -> None:
    marker, begun = uuid.uuid4().hex, tmp_path / "begun"
    os.mkfifo(begun)
    code = "import signal, sys\nopen(sys.argv[1], 'w').close()\nsignal.pause()"
    target = connected(code, str(begun), marker)

    async def run() -> None:
        asking = asyncio.ensure_future(target.ask(request()))
        await asyncio.to_thread(begun.read_bytes)  # until the program has opened it
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(asyncio.wait_for(run(), WAIT_SECONDS))
    assert all_die(marker)


# Healthcheck


def test_the_healthcheck_runs_once_however_many_ask(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'a').write('x')"
    target = connected("print('Hello')", healthcheck=python(code, str(tmp_path / "log")))

    async def run() -> None:
        try:
            await asyncio.gather(*(target.ask(request()) for _ in range(5)))
        finally:
            await target.close()

    asyncio.run(run())
    assert (tmp_path / "log").read_text() == "x"


def test_a_failing_healthcheck_fails_every_question_and_runs_nothing(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'log')!r}, 'w')"
    health = python("import sys; sys.exit('the model is not loaded')")
    error = fault(connected(code, name="local", healthcheck=health), request())
    assert "the healthcheck of local failed: " in str(error)
    assert "ended with exit code 1; its stderr ends with: the model is not loaded" in str(error)
    assert not (tmp_path / "log").exists()


def test_a_healthcheck_may_be_an_address() -> None:
    with ProviderServer(provider.sends({}), provider.status(503)) as server:
        url = f"{server.url}/health?a=1&b=2"
        seen = answers(connected("print('Hello')", healthcheck=url), request(), request())
        assert [each.response for each in seen] == ["Hello", "Hello"]
        error = fault(connected("print('Hello')", healthcheck=url), request())
    assert [(asked.method, asked.path) for asked in server.asked] == [("GET", "/health")] * 2
    assert "/health answered 503" in str(error)
    gone = connected("print('Hello')", healthcheck=provider.gone())
    assert "failed: no answer from http://127.0.0.1" in str(fault(gone, request()))


def test_a_healthcheck_that_hangs_is_ended() -> None:
    marker = uuid.uuid4().hex
    health = python("import signal; signal.pause()", marker)
    target = connected("print('Hello')", healthcheck=health, timeout_seconds=0.3)
    assert "took longer than 0.3 s" in str(fault(target, request()))
    assert all_die(marker)


def test_closing_ends_an_abandoned_healthcheck(tmp_path: Path) -> None:
    marker, begun = uuid.uuid4().hex, tmp_path / "begun"
    os.mkfifo(begun)
    code = "import signal, sys\nopen(sys.argv[1], 'w').close()\nsignal.pause()"
    target = connected("print('Hello')", healthcheck=python(code, str(begun), marker))

    async def run() -> None:
        asking = asyncio.ensure_future(target.ask(request()))
        await asyncio.to_thread(begun.read_bytes)
        asking.cancel()
        await asyncio.wait([asking])
        await target.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_SECONDS))
    assert all_die(marker)


# Settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": "agent {PROMT}"}, "did you mean 'PROMPT'?"),
        ({"command": ["agent", "{SECRET}"]}, "known: {PROMPT}, {EVAL_ID}"),
        (
            {"command": "agent {PROMPT} | tee log"},
            "'|' is shell syntax, but commands run without a shell",
        ),
        ({"command": "cd x && agent"}, "'&&' is shell syntax"),
        ({"command": "agent > log"}, "'>' is shell syntax"),
        ({"command": "agent $HOME"}, "'$HOME' is shell syntax"),
        ({"command": "agent 'x"}, "cannot be split into arguments: no closing quotation"),
        ({"command": " "}, "the command is empty"),
        ({"command": []}, "at least 1 item"),
        ({"command": 5}, "neither a list of arguments nor text"),
        (
            {"command": ["sh", "-c", "agent {PROMPT}"]},
            "the shell would execute the value of {PROMPT}",
        ),
        (
            {"command": "/bin/bash -lc 'agent {EVAL_ID}'"},
            "the shell would execute the value of {EVAL_ID}",
        ),
        ({"healthcheck": "check {PROMPT}"}, "has no value before the first question"),
        ({"healthcheck": "a | b"}, "'|' is shell syntax"),
        ({"files_format": "'x"}, "cannot be split"),
        ({"timeout_seconds": 0}, "greater than 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CommandTarget(**{"command": "agent", **settings})
    faults = caught.value.errors()
    assert any(words in f"{f['msg']} {f.get('ctx', {}).get('hint', '')}" for f in faults), faults


@pytest.mark.parametrize(
    "command",
    [
        "agent '|' \"a && b\" a\\;b",
        "agent --url='http://h/?a=1&b=2'",
        ["agent", "|", "$HOME", "a;b"],
        ["sh", "-c", 'agent "$1"', "sh", "{PROMPT}"],
    ],
)
def test_text_that_only_looks_like_shell_syntax_is_allowed(command: Any) -> None:
    assert CommandTarget(command=command).command[1:]


def test_it_is_called_by_its_name_or_its_program() -> None:
    assert CommandTarget(command="agent --fast").label == "command:agent"
    assert CommandTarget(command="agent", name="mine").label == "mine"
