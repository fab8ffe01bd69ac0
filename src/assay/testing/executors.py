"""Conformance tests for implementations of Executor, to be run with pytest.

    class TestMyExecutor(ExecutorConformance):
        def make_executor(self) -> Executor:
            return MyExecutor(...)

An executor that starts processes of its own is tested with ProcessConformance, which also kills
them. Each test gets its own empty folder, which the processes must be able to read and write.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import ExecutorError, UsageError
from assay.ports import Executor, WorkOrder

#: The timeout for the work of a test.
SECONDS = 120.0


class Piece(msgspec.Struct):
    """What the worker of these tests does; it returns the `number` and `size` bytes.

    It `waits` for a file, is killed unless the file of `dies` exists, and `raises`. The file
    "always" is never written.
    """

    number: int = 0
    size: int = 0
    waits: str = ""
    dies: str = ""
    raises: str = ""
    padding: bytes = b""

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode(self)


class UnpicklableError(Exception):
    """An exception that cannot be copied to another process."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle")


class UnpicklableOrder(WorkOrder, frozen=True):
    """An order that is only sent as msgspec encodes it."""

    def __reduce__(self) -> Any:
        raise TypeError("an order is not pickled")


def make_worker(details: bytes) -> FileWorker:
    return FileWorker(Path(os.fsdecode(details)))


class FileWorker:
    """Leaves files in a folder: `made-PID` once it is made, and `began-N-PID` for each piece."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / f"made-{os.getpid()}").touch(exist_ok=False)

    def __call__(self, data: bytes) -> bytes:
        piece = msgspec.msgpack.decode(data, type=Piece)
        (self._folder / f"began-{piece.number}-{os.getpid()}").touch()
        deadline = time.monotonic() + SECONDS
        while piece.waits and not (self._folder / piece.waits).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{piece.waits} was not written")
            time.sleep(0.001)
        if piece.dies and not (self._folder / piece.dies).exists():
            if piece.dies != "always":
                (self._folder / piece.dies).touch()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        if piece.raises == "unpicklable":
            raise UnpicklableError(piece.number, "no copy")
        if piece.raises:
            raise UsageError(piece.raises)
        return b"%d %s" % (piece.number, bytes(piece.size))

    def close(self) -> None:
        (self._folder / f"closed-{os.getpid()}").touch()


def bounded(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine; raises TimeoutError instead of waiting forever."""

    async def run() -> Any:
        async with asyncio.timeout(SECONDS):
            return await work

    return asyncio.run(run())


class ExecutorConformance(ABC):
    """Subclass it, implement `make_executor`, and pytest finds the tests."""

    @abstractmethod
    def make_executor(self) -> Executor: ...

    @pytest.fixture
    def order(self, tmp_path: Path) -> WorkOrder:
        return UnpicklableOrder(f"{__name__}:make_worker", os.fsencode(tmp_path))

    def results(self, order: WorkOrder, pieces: Iterable[Piece]) -> list[bytes]:
        async def collect() -> list[bytes]:
            run = self.make_executor().run(order, (piece.encoded() for piece in pieces))
            async with aclosing(run) as results:
                return [result async for result in results]

        found: list[bytes] = bounded(collect())
        return found

    def test_every_piece_has_its_result(self, order: WorkOrder) -> None:
        found = self.results(order, map(Piece, range(50)))
        assert sorted(int(result) for result in found) == list(range(50))

    def test_no_pieces_have_no_results(self, order: WorkOrder) -> None:
        assert self.results(order, []) == []

    def test_each_process_makes_its_worker_once(self, order: WorkOrder, tmp_path: Path) -> None:
        self.results(order, map(Piece, range(20)))  # a second `touch` of one file raises
        assert list(tmp_path.glob("made-*"))

    def test_an_executor_runs_one_order_after_another(
        self, order: WorkOrder, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        other = UnpicklableOrder(order.maker, os.fsencode(tmp_path / "other"))
        executor = self.make_executor()

        async def run() -> list[list[bytes]]:
            return [
                [r async for r in executor.run(o, [Piece(3).encoded()])] for o in (order, other)
            ]

        assert bounded(run()) == [[b"3 "], [b"3 "]]
        assert list((tmp_path / "other").glob("began-3-*"))

    def test_pieces_are_taken_only_as_they_are_needed(self, order: WorkOrder) -> None:
        taken: list[int] = []

        def endless() -> Iterator[bytes]:
            for number in count():
                taken.append(number)
                yield Piece(number).encoded()

        async def run() -> int:
            async with aclosing(self.make_executor().run(order, endless())) as results:
                for _ in range(20):
                    await anext(results)
                return len(taken)

        assert bounded(run()) < 2000

    def test_large_pieces_and_results_arrive(self, order: WorkOrder) -> None:
        sizes = [0, 1, 70_000, 3_000_000, 1_048_570] * 4
        pieces = [Piece(n, size, padding=bytes(size)) for n, size in enumerate(sizes)]
        found = self.results(order, pieces)
        assert sorted(map(len, found)) == sorted(
            len(f"{number} ") + size for number, size in enumerate(sizes)
        )

    def test_an_exception_of_the_worker_is_raised(self, order: WorkOrder) -> None:
        with pytest.raises(UsageError, match="wrong here"):
            self.results(order, [Piece(0), Piece(1, raises="wrong here"), Piece(2)])

    def test_an_exception_that_cannot_be_pickled_is_raised(self, order: WorkOrder) -> None:
        with pytest.raises(Exception, match="no copy"):
            self.results(order, [Piece(0, raises="unpicklable")])

    def test_an_order_whose_worker_cannot_be_made_raises(self, tmp_path: Path) -> None:
        order = UnpicklableOrder(f"{__name__}:make_wroker", os.fsencode(tmp_path))
        with pytest.raises(ExecutorError, match="make_wroker"):
            self.results(order, [Piece(0)])

    def test_the_event_loop_runs_while_pieces_are_done(
        self, order: WorkOrder, tmp_path: Path
    ) -> None:
        async def run() -> bytes:
            results = self.make_executor().run(order, [Piece(0, waits="now").encoded()])
            step = asyncio.ensure_future(anext(results))
            while not list(tmp_path.glob("began-0-*")):
                await asyncio.sleep(0.001)
            (tmp_path / "now").touch()
            found = await step
            await results.aclose()
            return found

        assert bounded(run()) == b"0 "

    def test_a_step_can_be_cancelled(self, order: WorkOrder, tmp_path: Path) -> None:
        async def run() -> None:
            results = self.make_executor().run(order, [Piece(0, waits="now").encoded()] * 3)
            step = asyncio.ensure_future(anext(results))
            while not list(tmp_path.glob("began-0-*")):
                await asyncio.sleep(0.001)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            assert [result async for result in results] == []

        try:
            bounded(run())
        finally:
            (tmp_path / "now").touch()


class ProcessConformance(ExecutorConformance):
    """For executors that start processes of their own on this machine, at least two."""

    def test_a_piece_whose_process_is_killed_is_done_again(
        self, order: WorkOrder, tmp_path: Path
    ) -> None:
        pieces = [Piece(n, dies="killed" if n == 7 else "") for n in range(30)]
        found = self.results(order, pieces)
        assert sorted({int(result) for result in found}) == list(range(30))
        assert (tmp_path / "killed").exists()

    def test_a_piece_that_kills_two_processes_raises(self, order: WorkOrder) -> None:
        with pytest.raises(ExecutorError, match="twice on the same work"):
            self.results(order, [Piece(0, dies="always")])

    def test_processes_end_when_the_results_are_closed(
        self, order: WorkOrder, tmp_path: Path
    ) -> None:
        async def run() -> None:
            pieces = [Piece(0), Piece(1, waits="never")]
            results = self.make_executor().run(order, (piece.encoded() for piece in pieces))
            async with aclosing(results):
                await anext(results)
                while not list(tmp_path.glob("began-1-*")):
                    await asyncio.sleep(0.001)
            workers = {int(file.name.rpartition("-")[2]) for file in tmp_path.glob("began-*")}
            while any(map(_is_alive, workers)):
                await asyncio.sleep(0.001)

        bounded(run())


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
