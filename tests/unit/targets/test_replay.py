"""Recorded observations: found by case and repeat, in files of any size, with their faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tracemalloc
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UsageError
from assay.model.message import Message, ToolCall
from assay.model.observation import Usage
from assay.ports import Request
from assay.targets import replay_index
from assay.targets.replay import Replay, ReplayTarget
from assay.targets.replay_index import Index
from unit.target_calls import answer, answers, fault, request


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "seen.jsonl"


def connected(file: Path, lines: Sequence[Any]) -> Replay:
    """The target of a file with these lines; anything but text is written as JSON."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    target = ReplayTarget(file=file.name).connect()
    assert isinstance(target, Replay)
    return target


FULL = {
    "id": "one",
    "response": "4",
    "toolCalls": [{"name": "add", "params": {"a": 1}, "result": 4, "success": True}],
    "durationMs": 9,
    "usage": {"inputTokens": 7, "outputTokens": 8},
    "costUsd": 0.5,
}


def test_a_line_is_found_by_the_id_of_the_case(file: Path) -> None:
    target = connected(file, [{"id": "two", "response": "no"}, FULL])
    seen = answer(target, request())
    assert (seen.response, seen.duration_ms, seen.cost_usd) == ("4", 9, 0.5)
    assert seen.tool_calls == (ToolCall("add", {"a": 1}, 4, success=True),)
    assert (seen.usage, seen.raw) == (Usage(7, 8), FULL)


def test_nothing_is_measured_that_was_not_recorded(file: Path) -> None:
    seen = answer(connected(file, [{"id": "one", "response": "x"}]), request())
    assert (seen.duration_ms, seen.usage, seen.tool_calls) == (None, None, None)


@pytest.mark.parametrize(
    "record",
    [
        {"output_messages": [{"role": "assistant", "content": "Hello"}]},
        {"messages": [{"role": "assistant", "content": "Hello"}]},
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}]},
        {"text": "Hello"},
    ],
)
def test_every_known_shape_is_read(file: Path, record: dict[str, Any]) -> None:
    assert answer(connected(file, [{"id": "one", **record}]), request()).response == "Hello"


def test_a_recorded_failure_stays_one(file: Path) -> None:
    seen = answer(connected(file, [{"id": "one", "error": "it was down"}]), request())
    assert seen.error == "it was down"


def test_lines_with_one_id_are_repeats_in_order(file: Path) -> None:
    lines = [{"id": name, "response": f"{name}{n}"} for n in range(3) for name in ("one", "two")]
    asked = [request(repeat=n) for n in (2, 0, 1)]
    seen = answers(connected(file, lines), *asked)
    assert [each.response for each in seen] == ["one2", "one0", "one1"]


def test_a_case_without_a_line_is_an_error(file: Path) -> None:
    error = fault(connected(file, [FULL]), request(id="three"))
    assert str(error) == "no recorded observation for 'three' in seen.jsonl"
    assert not error.retryable


def test_a_repeat_without_a_line_is_an_error(file: Path) -> None:
    error = fault(connected(file, [FULL, FULL]), request(repeat=2))
    assert "no recorded observation for 'one'" in str(error)
    assert "it has 2, and this is repeat 3" in str(error)


def test_a_question_of_no_case_is_an_error(file: Path) -> None:
    asked = Request((Message("user", "Hi"),))
    assert "this request has no case" in str(fault(connected(file, [FULL]), asked))


def test_an_empty_file_has_no_observation(file: Path) -> None:
    assert "no recorded observation" in str(fault(connected(file, []), request()))


# Bad lines

BAD = [
    ("{half", "seen.jsonl:2:2: error[json-syntax]"),
    ('{"id": "x", "response": "y"} z', "seen.jsonl:2:30: error[json-syntax]"),
    ("[1]", "seen.jsonl:2:1: error[wrong-type]: the line is a list, not a mapping"),
    ('{"response": "x"}', "seen.jsonl:2:1: error[missing-key]: the key 'id' is missing"),
    ('{"id": 5}', "seen.jsonl:2:8: error[wrong-type]: 'id' is 5; it must be text"),
    ("[" * 100_000, "seen.jsonl:2:"),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_a_bad_line_is_reported_and_the_others_are_read(file: Path, line: str, words: str) -> None:
    target = connected(file, [{"id": "two"}, line, FULL])
    first, second = answer_and_fault(target)
    assert first == "4"
    (problem,) = target.problems()
    asyncio.run(target.close())
    assert problem.startswith(words)
    assert f"(some lines cannot be read; the first: {words.split(' ')[0]}" in second


def answer_and_fault(target: Replay) -> tuple[str, str]:
    """The answer of the case that is there, and the error of one that is not."""

    async def run() -> tuple[str, str]:
        seen = await target.ask(request())
        with pytest.raises(Exception, match="no recorded observation") as caught:
            await target.ask(request(id="three"))
        return seen.response, str(caught.value)

    return asyncio.run(run())


def test_blank_lines_and_a_byte_order_mark_are_skipped(file: Path) -> None:
    lines = b'\xef\xbb\xbf{"id": "one", "response": "a"}\r\n\r\n  \n{"id": "one", "response": "b"}'
    file.write_bytes(lines)
    target = ReplayTarget(file=str(file)).connect()
    assert isinstance(target, Replay)
    assert [each.response for each in answers(target, request(), request(repeat=1))] == ["a", "b"]
    assert target.problems() == []
    asyncio.run(target.close())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"id": "one", "response": "\xff"}', "seen.jsonl:3: "),
        (b'{"id": "one", "toolCalls": [{}]}', "seen.jsonl:3: the observation is broken"),
        (b'{"id": "one", "answer": 5}', "seen.jsonl:3: a mapping with 'id', 'answer'"),
        (b'{"id": "one", "response": ' + b"[" * 200 + b"]" * 200 + b"}", "seen.jsonl:3: "),
    ],
)
def test_an_invalid_observation_is_an_error_of_its_case(
    file: Path, line: bytes, words: str
) -> None:
    file.write_bytes(b'{"id": "zero", "response": ""}\n\n' + line + b"\n")
    target = ReplayTarget(file=file.name).connect()
    assert str(fault(target, request())).startswith(words)


def test_a_line_that_is_too_long_ends_the_reading(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_index, "MAX_LINE", 100)
    target = connected(file, [{"id": "one", "response": "x"}, {"id": "long", "response": "x" * 99}])
    assert answer(target, request()).response == "x"
    (problem,) = target.problems()
    asyncio.run(target.close())
    assert problem.startswith("seen.jsonl:2:1: error[too-large]: the line has more than 100 bytes")


@pytest.mark.parametrize(
    ("name", "words"), [("missing.jsonl", "there is no such file"), (".", "this is a directory")]
)
def test_a_file_that_cannot_be_read_is_reported_on_connect(
    file: Path, name: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        ReplayTarget(file=name).connect()


# Many lines


def test_lines_that_no_case_asks_for_are_counted(file: Path) -> None:
    lines = [{"id": f"c{n % 10}", "response": "x"} for n in range(35)]
    target = connected(file, lines)
    assert target.unused(f"c{n}" for n in range(10)) == 0
    assert target.unused(["c0", "c1", "unknown"]) == 35 - 8
    assert target.unused([]) == 35
    asyncio.run(target.close())


def test_ids_with_the_same_hash_are_distinguished(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_index, "hash", lambda text: 7, raising=False)
    lines = [{"id": f"c{n % 5}", "response": f"{n}"} for n in range(20)]
    asked = [request(id=f"c{n}", repeat=2) for n in range(5)]
    seen = answers(connected(file, lines), *asked)
    assert [each.response for each in seen] == ["10", "11", "12", "13", "14"]


def test_many_lines_take_little_memory(file: Path) -> None:
    count = 20_000
    target = connected(file, [f'{{"id": "case-{n}", "response": "{n}"}}' for n in range(count)])
    tracemalloc.start()
    try:
        assert target.unused([]) == count
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / count < 30
    assert peak / count < 48
    asked = [request(id=f"case-{n}") for n in (0, 9_999, count - 1)]
    assert [each.response for each in answers(target, *asked)] == ["0", "9999", str(count - 1)]


def test_concurrent_first_requests_share_one_index(file: Path) -> None:
    target = connected(file, [{"id": f"c{n}", "response": str(n)} for n in range(50)])

    async def run() -> list[str]:
        seen = await asyncio.gather(*(target.ask(request(id=f"c{n}")) for n in range(50)))
        await target.close()
        return [each.response for each in seen]

    assert asyncio.run(run()) == [str(n) for n in range(50)]


def test_it_may_be_asked_again_after_it_was_closed(file: Path) -> None:
    target = connected(file, [FULL])
    assert [answer(target, request()).response for _ in range(2)] == ["4", "4"]


def test_it_is_called_by_its_name_or_its_file(file: Path) -> None:
    assert ReplayTarget(file="seen.jsonl").label == "replay:seen.jsonl"
    assert ReplayTarget(file="seen.jsonl", name="old").label == "old"


def test_a_large_file_is_read_in_two_processes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Any] = [{"id": f"c{n % 7}", "response": f"{n}"} for n in range(40)]
    lines[30] = "{broken"
    connected(file, lines)
    whole = Index(file, file.name)
    monkeypatch.setattr(replay_index, "HALVED_BYTES", 100)
    other: list[int] = []
    keep = replay_index._Other.part

    def noted(self: Any) -> Any:
        part = keep(self)
        other.append(len(part.offsets))
        return part

    monkeypatch.setattr(replay_index._Other, "part", noted)
    halved = Index(file, file.name)
    assert 10 < other[0] < 30
    assert halved.offsets == whole.offsets
    assert halved.end == whole.end
    assert [halved.lines(f"c{n}") for n in range(8)] == [whole.lines(f"c{n}") for n in range(8)]
    assert [p.place for p in halved.problems.sorted()] == [p.place for p in whole.problems.sorted()]
    assert halved.problems.sorted()[0].line == 31


def test_a_half_whose_process_died_is_read_here(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(file, [{"id": f"c{n}", "response": f"{n}"} for n in range(40)])
    monkeypatch.setattr(replay_index, "HALVED_BYTES", 100)
    here, keep = os.getpid(), replay_index.read

    def mortal(*place: Any) -> Any:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return keep(*place)

    monkeypatch.setattr(replay_index, "read", mortal)
    assert len(Index(file, file.name).offsets) == 40


def test_the_other_process_is_ended_after_a_line_that_is_too_long(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a line that is too long no other is read; the process that read them is ended."""
    lines = [{"id": f"c{n}", "response": "x" * (500 if n == 3 else 0)} for n in range(40)]
    connected(file, lines)
    monkeypatch.setattr(replay_index, "HALVED_BYTES", 100)
    monkeypatch.setattr(replay_index, "MAX_LINE", 400)
    ended: list[int] = []
    keep = os.waitpid

    def noted(pid: int, options: int) -> tuple[int, int]:
        ended.append(pid)
        return keep(pid, options)

    monkeypatch.setattr(os, "waitpid", noted)
    before = len(os.listdir("/proc/self/fd"))
    assert len(Index(file, file.name).offsets) == 3
    assert len(ended) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_other_process_does_not_outlive_its_parent(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own end of the pipe would keep it waiting for a reader."""
    connected(file, [{"id": f"c{n}", "response": ""} for n in range(40)])
    here, keep = os.getpid(), replay_index.read

    def large(*place: Any) -> Any:
        part = keep(*place)
        return part if os.getpid() == here else part._replace(offsets=array("Q", bytes(800_000)))

    monkeypatch.setattr(replay_index, "read", large)
    other = replay_index._Other(file, file.name, 0, 100)
    other._source.close()
    _, status = os.waitpid(other._pid, 0)  # it would never come back
    assert os.waitstatus_to_exitcode(status) == 0
