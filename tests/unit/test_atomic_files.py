"""Files are replaced in one step; devices and pipes are written to."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from assay.atomic_files import replacing
from timeouts import WAIT_SECONDS


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_bytes(b"old")
    file.chmod(0o640)
    with replacing(file) as stream:
        stream.write(b"new")
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640

    def fails() -> None:
        with replacing(file) as stream:
            stream.write(b"half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fails()
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("report.md", b"new")]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    with replacing(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path, linked: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(tmp_path / "link" if linked else pipe) as stream:
        stream.write(b"new")
    reader.join(WAIT_SECONDS)
    assert read == [b"new"]
    assert pipe.is_fifo()


def test_the_null_device_is_not_replaced() -> None:
    before = os.stat(os.devnull)
    with replacing(Path(os.devnull)) as stream:
        stream.write(b"new")
    assert os.stat(os.devnull).st_rdev == before.st_rdev
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("letter", ["a", "é", "語", "🌍"])
def test_a_file_may_have_the_longest_name(tmp_path: Path, letter: str) -> None:
    file = tmp_path / (letter * (255 // len(letter.encode())))
    with replacing(file) as stream:
        stream.write(b"new")
    assert file.read_bytes() == b"new"
