"""A folder of transcripts is replayed: one file for each case."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UsageError
from assay.ports import Target
from assay.targets.replay import ReplayTarget
from unit.target_calls import answer, fault, request

FORMATS = Path(__file__).parents[1] / "observations" / "formats"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen").mkdir()
    return tmp_path / "seen"


def connected() -> Target:
    return ReplayTarget(file="seen").connect()


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("atif.json", "hello.txt has been created."),
        ("claude_code_session.jsonl", "The edit was refused; read calc.py first."),
    ],
)
def test_a_transcript_is_found_by_the_id_of_its_case(folder: Path, shape: str, text: str) -> None:
    shutil.copy(FORMATS / shape, folder / f"one{Path(shape).suffix}")
    (folder / "README.md").write_text("not a transcript")
    seen = answer(connected(), request())
    assert (seen.response, len(seen.tool_calls or ())) == (text, 2)


def test_a_file_of_lines_with_one_line_is_that_record(folder: Path) -> None:
    (folder / "one.jsonl").write_text('\n{"response": "4"}\n')
    assert answer(connected(), request()).response == "4"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("two.json", {"response": "x"}, "no recorded observation for 'one' in seen"),
        ("one.json", {"steps": []}, "seen/one.json: a mapping with 'steps' is not a known record"),
        ("one.json", '{"response": \n oops}', "seen/one.json:2:2"),
        ("one.jsonl", '{"response": ""}\n{oops}', "seen/one.jsonl:2:2"),
        ("one.json", b"\xff\xfe", "seen/one.json"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_its_case(
    folder: Path, name: str, content: Any, words: str
) -> None:
    data = json.dumps(content) if isinstance(content, dict) else content
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    assert words in str(fault(connected(), request()))


def test_a_session_log_given_as_a_replay_file_points_to_the_folder(folder: Path) -> None:
    target = ReplayTarget(file=str(FORMATS / "claude_code_session.jsonl")).connect()
    words = str(fault(target, request()))
    assert "the key 'id' is missing (put transcripts without one into a folder" in words


def test_several_files_of_a_case_are_its_repeats(folder: Path) -> None:
    (folder / "one.json").write_text('{"response": "a"}')
    (folder / "one.jsonl").write_text('{"response": "b"}')
    target = connected()
    assert [answer(target, request(repeat=n)).response for n in (0, 1)] == ["a", "b"]
    assert "it has 2, and this is repeat 3" in str(fault(target, request(repeat=2)))


def test_a_folder_without_transcripts_is_refused(folder: Path) -> None:
    with pytest.raises(
        UsageError, match=r"seen: this is a directory without a .json or .jsonl file"
    ):
        connected()
