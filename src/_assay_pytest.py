"""The pytest plugin. It imports only pytest: a project that does not use it pays nothing.

`pytest --assay`, or `assay = true` in the ini file, collects eval files. Everything else is in
`assay.pytest_plugin`, which is imported when an eval file is found, or the fixture or mark is used.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from assay.pytest_plugin.fixture import AssayFixture
    from assay.pytest_plugin.plugin import EvalPlugin

# Written by `make docs` from the fields of RunOptions: flag, kind, metavar and help text.
RUN_OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    (
        "target",
        "text",
        "TARGET",
        "The target to ask: its name, or one written inline. Several are compared.",
    ),
    (
        "judge",
        "text",
        "TARGET",
        "The judge to use instead of the configured one.",
    ),
    (
        "workers",
        "whole",
        "",
        "How many trials run at once (10).",
    ),
    (
        "repeat",
        "whole",
        "",
        "How many times each case is asked (1).",
    ),
    (
        "timeout",
        "number",
        "",
        "Seconds for all attempts of a trial, not counting waits for rate limits (120).",
    ),
    (
        "max-retries",
        "whole",
        "",
        "How many times a failed request is retried (3).",
    ),
    (
        "requests-per-minute",
        "number",
        "",
        "At most this many requests per minute.",
    ),
    (
        "tokens-per-minute",
        "number",
        "",
        "At most this many tokens per minute.",
    ),
    (
        "budget-usd",
        "number",
        "",
        "Stop asking once this many US dollars are spent.",
    ),
    (
        "max-failures",
        "whole",
        "",
        "Stop asking after this many failed cases.",
    ),
    (
        "seed",
        "whole",
        "",
        "The seed for the order in which a live target is asked (0).",
    ),
    (
        "cache",
        "flag",
        "",
        "Take answers from the cache, and put new ones there.",
    ),
    (
        "evaluator",
        "list",
        "TYPE",
        "The type of the evaluator for cases that name none.",
    ),
    (
        "baseline",
        "text",
        "RUN",
        "Compare with this run: an id, the name of a baseline, or a result file.",
    ),
    (
        "gate",
        "regression strict non-inferiority",
        "",
        "What fails a run that has a baseline (regression).",
    ),
    (
        "margin",
        "number",
        "",
        "The difference in pass rate that does not matter (0.02).",
    ),
    (
        "confirm",
        "whole",
        "",
        "How many times a live target is asked again about a case that got worse (5).",
    ),
    (
        "stop-when",
        "decided",
        "",
        "Stop asking when the comparison with the baseline is decided.",
    ),
    (
        "preference",
        "flag",
        "",
        "After a run of several targets, let the judge of `preference` compare their answers.",
    ),
    (
        "min-pass-rate",
        "number",
        "",
        "The pass rate that a run without a baseline must reach (all cases).",
    ),
    (
        "min-coverage",
        "number",
        "",
        "The share of cases that must be judged (1).",
    ),
    (
        "require-calibrated",
        "flag",
        "",
        "Fail when a judge that counts is not calibrated (assay calibrate).",
    ),
    (
        "strict",
        "flag",
        "",
        "Treat warnings as failures: stale tools, unlocked cases, no clear decision.",
    ),
)

_TYPES = {"number": float, "whole": int}
#: The file that has the hashes of a regression file; it is an error if that file is missing.
_LOCK_SUFFIX = ".regression.lock.json"


class AssayWarning(pytest.PytestWarning):
    """A warning about an eval file, or a gate that could not decide."""


_suffixes = pytest.StashKey[tuple[str, ...]]()
_own_marks = pytest.StashKey[frozenset[str]]()
_channel = pytest.StashKey[str]()
_plugin = pytest.StashKey["EvalPlugin"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("assay", "Collect eval files.", type="bool", default=False)
    group = parser.getgroup("assay", "Assay: eval files as tests")
    group.addoption("--assay", action="store_true", help="Collect eval files.")
    group.addoption("--assay-store", metavar="URL", help="Where the run is recorded.")
    for flag, kind, metavar, text in RUN_OPTIONS:
        name = f"--assay-{flag}"
        if kind == "flag":
            dest = "assay_" + flag.replace("-", "_")
            group.addoption(name, dest=dest, action="store_const", const=True, help=text)
            no = f"--assay-no-{flag}"
            group.addoption(no, dest=dest, action="store_const", const=False, help="The opposite.")
        elif kind == "list":
            group.addoption(name, action="append", metavar=metavar, help=text)
        elif kind in ("text", *_TYPES):
            group.addoption(name, type=_TYPES.get(kind, str), metavar=metavar, help=text)
        else:
            group.addoption(name, choices=kind.split(), help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # First: later, those of pytest and of plugins are among them.
    config.stash[_own_marks] = frozenset(config.getini("markers"))
    meaning = "run the test several times, and require a pass rate."
    config.addinivalue_line("markers", f"assay(repeat=1, min_pass_rate=1): {meaning}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not _may_be_eval_file(file_path.name, parent.config):
        return None
    return plugin_of(parent.config).collect_file(file_path, parent)


def _may_be_eval_file(name: str, config: pytest.Config) -> bool:
    """Is the plugin enabled, and is there a loader for files with this suffix?"""
    if not (config.getoption("assay") or config.getini("assay")):
        return False
    if _suffixes not in config.stash:
        from importlib.metadata import entry_points

        loaders = entry_points(group="assay.loaders")
        config.stash[_suffixes] = (_LOCK_SUFFIX, *(f".{loader.name}" for loader in loaders))
    return name.endswith(config.stash[_suffixes])


def plugin_of(config: pytest.Config) -> EvalPlugin:
    """The part of the plugin that knows Assay."""
    if _plugin not in config.stash:
        from assay.pytest_plugin.plugin import EvalPlugin

        config.stash[_plugin] = EvalPlugin(config, config.stash[_own_marks])
        config.pluginmanager.register(config.stash[_plugin], "assay-evals")
    return config.stash[_plugin]


# pytest-xdist: the controller asks, workers wait for the results of their items.


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Name the channel on which a worker asks the controller for results."""
    config: pytest.Config = node.config
    node.workerinput["assay"] = config.stash.setdefault(_channel, secrets.token_hex(16))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Open the channel before the first test begins."""
    config: pytest.Config = node.config
    if any(_may_be_eval_file(nodeid.split("::")[0], config) for nodeid in ids):
        plugin_of(config).serve(config.stash[_channel], ids)


# Tests in Python


@pytest.fixture
def assay() -> Generator[AssayFixture]:
    """Asks an agent, and checks what it did: all misses of a test are reported together."""
    from assay.pytest_plugin.fixture import AssayFixture

    fixture = AssayFixture()
    yield fixture
    # The test has taken its own; these are of fixtures that are torn down.
    if misses := fixture.take_misses():
        pytest.fail("\n".join(misses), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    mark = pyfuncitem.get_closest_marker("assay")
    if mark is None and "assay" not in pyfuncitem.fixturenames:
        return (yield)
    from assay.pytest_plugin.repeats import repeating

    body = pyfuncitem.obj
    pyfuncitem.obj = repeating(pyfuncitem, mark)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = body
