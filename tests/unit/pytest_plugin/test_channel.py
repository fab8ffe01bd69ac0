"""Workers of pytest-xdist get the results of their items from the controller."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

from assay.errors import UsageError
from assay.model.comparison import CaseRef
from assay.pytest_plugin.channel import RemoteResults, ResultServer, _address
from assay.pytest_plugin.results import CaseReport, GateReport, Results


class Known:
    """Results that are known already."""

    def case(self, ref: CaseRef) -> CaseReport:
        if ref.id == "wrong":
            raise UsageError("it is wrong")
        return CaseReport("failed", (f"{ref.id} is bad",), diffs=(("path", ("- a", "+ b")),))

    def gate(self) -> GateReport:
        return GateReport(True, "passed", "1 of 1 judged case passed")


@pytest.fixture
def channel() -> Iterator[str]:
    channel = secrets.token_hex(16)
    known: Results = Known()
    server = ResultServer(channel, lambda: known)
    yield channel
    server.close()


def test_results_arrive_as_they_are(channel: str) -> None:
    first, second = RemoteResults(channel), RemoteResults(channel)
    for results in (first, second):
        assert results.case(CaseRef("a.yaml", "b")) == Known().case(CaseRef("a.yaml", "b"))
        assert results.gate() == Known().gate()
        results.close()


def test_an_error_of_the_controller_is_the_result(channel: str) -> None:
    results = RemoteResults(channel)
    assert results.case(CaseRef("a.yaml", "wrong")) == CaseReport("errored", ("it is wrong",))
    results.close()


def test_a_stranger_is_refused_and_disturbs_nobody(channel: str) -> None:
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        Client(_address(channel), authkey=b"guessed")
    results = RemoteResults(channel)
    assert results.gate().passed
    results.close()
