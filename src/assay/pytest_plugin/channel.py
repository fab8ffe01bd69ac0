"""How workers of pytest-xdist get the results of their items from the controller.

The controller listens on a local socket before the first test begins. A worker sends the case of
an item, and waits for its result. Messages are JSON, and both sides prove that they know the name
of the channel, which the controller has chosen at random.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

import msgspec

from assay.errors import AssayError
from assay.model.comparison import CaseRef
from assay.pytest_plugin.results import CaseReport, GateReport, Results
from assay.threads import call_in_thread

#: This much of the name is in the address; the rest is the key.
_PUBLIC = 12
#: What a worker sends for the verdict about the whole run.
_GATE = CaseRef("", "")

_decode_ref = msgspec.json.Decoder(CaseRef).decode
_decode_case = msgspec.json.Decoder(CaseReport).decode
_decode_gate = msgspec.json.Decoder(GateReport).decode


def _address(channel: str) -> str:
    name = f"assay-pytest-{channel[:_PUBLIC]}"
    if sys.platform == "win32":
        return rf"\\.\pipe\{name}"
    return os.path.join(tempfile.gettempdir(), name)


def _key(channel: str) -> bytes:
    return channel[_PUBLIC:].encode()


class ResultServer:
    """Answers the workers. `results` is called for the first request, and starts the run."""

    def __init__(self, channel: str, results: Callable[[], Results]) -> None:
        self._channel, self._results = channel, results
        self._listener = Listener(_address(channel), authkey=_key(channel))
        self._is_closed = False
        self._thread = threading.Thread(target=self._accept, name="assay-results", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            Client(_address(self._channel), authkey=_key(self._channel)).close()  # wakes it
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(OSError, EOFError, AuthenticationError):  # it was no worker of ours
                connection = self._listener.accept()
                call_in_thread(partial(self._serve, connection))

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError):  # the worker has ended
            while True:
                ref = _decode_ref(connection.recv_bytes())
                connection.send_bytes(msgspec.json.encode(self._answer(ref)))

    def _answer(self, ref: CaseRef) -> CaseReport | GateReport:
        try:
            results = self._results()
            return results.gate() if ref == _GATE else results.case(ref)
        except AssayError as error:
            if ref == _GATE:
                return GateReport(False, "not run", str(error))
            return CaseReport("errored", tuple(str(error).splitlines()))


class RemoteResults:
    """The results of a run in the controller."""

    def __init__(self, channel: str) -> None:
        self._connection = Client(_address(channel), authkey=_key(channel))

    def case(self, ref: CaseRef) -> CaseReport:
        return _decode_case(self._ask(ref))

    def gate(self) -> GateReport:
        return _decode_gate(self._ask(_GATE))

    def close(self) -> None:
        self._connection.close()

    def _ask(self, ref: CaseRef) -> bytes:
        self._connection.send_bytes(msgspec.json.encode(ref))
        return self._connection.recv_bytes()
