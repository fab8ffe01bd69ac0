"""Repeats of tests in Python: `@pytest.mark.assay(repeat=5, min_pass_rate=0.8)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from assay.errors import cause_of, nearest
from assay.model.score import reaches
from assay.pytest_plugin.fixture import AssayFixture
from assay.reporters.terminal import safe
from assay.text import exact_percent

_KEYS = ("repeat", "min_pass_rate")


def repeating(item: pytest.Function, mark: pytest.Mark | None) -> Callable[..., Any]:
    """The body of a test, repeated as the mark says. Its fixtures are set up once."""
    body, trials = item.obj, _Trials(item, mark)

    @wraps(body)
    def repeated(**arguments: Any) -> None:
        __tracebackhide__ = True
        for number in trials.numbers:
            with trials.counted(number):
                body(**arguments)
        trials.judge()

    @wraps(body)
    async def repeated_async(**arguments: Any) -> None:
        __tracebackhide__ = True
        for number in trials.numbers:
            with trials.counted(number):
                await body(**arguments)
        trials.judge()

    return repeated_async if inspect.iscoroutinefunction(body) else repeated


class _Trials:
    """The repeats of a test, and how they ended."""

    def __init__(self, item: pytest.Function, mark: pytest.Mark | None) -> None:
        self._item = item
        fixture = item.funcargs.get("assay")
        self._fixture = fixture if isinstance(fixture, AssayFixture) else AssayFixture()
        repeat, self._min_pass_rate = _read(mark)
        self.numbers = range(1, repeat + 1)
        self._failures: list[str] = []

    @contextmanager
    def counted(self, number: int) -> Iterator[None]:
        """Counts how a repeat ends. The error of a test without repeats is raised as it is."""
        __tracebackhide__ = True
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            misses = self._fixture.take_misses()
            if len(self.numbers) > 1:
                self._failures.append("\n".join((f"repeat {number}: {cause_of(error)}", *misses)))
                return
            for miss in misses:
                error.add_note(safe(miss))
            raise
        if misses := self._fixture.take_misses():
            self._failures.append("\n".join(map(safe, misses)))

    def judge(self) -> None:
        """Fail the test if too few repeats passed."""
        __tracebackhide__ = True
        repeats = len(self.numbers)
        passed = repeats - len(self._failures)
        if repeats == 1:
            if self._failures:
                pytest.fail(self._failures[0], pytrace=False)
            return
        rate = passed / repeats
        self._item.user_properties.append(("assay_pass_rate", rate))
        least = "all" if self._min_pass_rate == 1 else exact_percent(self._min_pass_rate)
        found = "\n".join((f"{passed} of {repeats} passed ({least} must pass)", *self._failures))
        if not reaches(rate, self._min_pass_rate):
            pytest.fail(found, pytrace=False)
        self._item.add_report_section("call", "repeats", found)


def _read(mark: pytest.Mark | None) -> tuple[int, float]:
    """The repeats and the pass rate of a mark."""
    given = {} if mark is None else mark.kwargs
    if mark is not None and mark.args:
        _refuse(f"takes no positional arguments, got {mark.args!r}")
    for key in given:
        if key not in _KEYS:
            _refuse(f"has no {key!r} ({nearest(key, _KEYS) or 'known: ' + ', '.join(_KEYS)})")
    repeat, rate = given.get("repeat", 1), given.get("min_pass_rate", 1.0)
    if type(repeat) is not int or repeat < 1:
        _refuse(f"repeat is {repeat!r}; it must be a whole number, at least 1")
    if type(rate) not in (int, float) or not 0 <= rate <= 1:
        _refuse(f"min_pass_rate is {rate!r}; it must be a number from 0 to 1")
    return repeat, rate


def _refuse(problem: str) -> None:
    pytest.fail(f"pytest.mark.assay: {problem}", pytrace=False)
