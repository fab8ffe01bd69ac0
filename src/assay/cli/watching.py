"""`assay run --watch`: runs again whenever eval files or sources change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec
from click.core import ParameterSource

from assay.errors import AssayError
from assay.service.plan import PlanRequest, plan
from assay.service.project import find_settings
from assay.service.watching import Changes, Watcher
from assay.settings import shown_path
from assay.text import count, money, printable

#: Seconds between two signals to a run whose results are not needed any more.
AGAIN = 1.0
#: How many changed files are named.
MAX_NAMED = 3
_POSIX = os.name == "posix"


class WatchedRun(msgspec.Struct, frozen=True):
    """The run to repeat: its paths, its options, and the same options as words for the command."""

    paths: tuple[str, ...]
    options: dict[str, Any]
    words: tuple[str, ...]
    store: str | None
    output: tuple[str, ...]


def watch(run: WatchedRun) -> NoReturn:
    """Run, wait for changes, and run what they affect, until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    written = [Path(file) for file in run.output]
    watcher = Watcher(find_settings().root, [Path(path) for path in run.paths], written)
    process, changes = None, Changes()
    try:
        while True:
            paths = run.paths if changes.paths is None else _existing(changes.paths)
            process = _start(run, paths, changes)
            found = watcher.wait(partial(_ended, process))
            if found is not None and not _ended(process, 0):
                _say(f"{_named(found)}: the run is cancelled")
                _cancel(process)
                found |= changes
            if found is None:
                _say("waiting for changes; Ctrl-C ends")
                found = watcher.wait(_sleep)
            assert found is not None, "it waits without an end"
            changes = found
    except KeyboardInterrupt:
        _let_finish(process)
        raise SystemExit(130) from None


def _start(
    run: WatchedRun, paths: Sequence[str], changes: Changes
) -> subprocess.Popen[bytes] | None:
    """A run in a process of its own, which imports the sources as they are now."""
    if not paths:
        return None
    _say(": ".join(filter(None, (_named(changes), f"running {_forecast(run, paths)}"))))
    # The working directory may have a package of our name.
    command = [sys.executable, "-P", "-m", "assay", "run"]
    # A judge after every change would cost more than anyone expects; the last flag counts.
    command += ["--no-preference", *run.words, "--", *paths]
    # In a group of its own, Ctrl-C reaches it only through us.
    group = 0 if _POSIX else None
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=group)


def _forecast(run: WatchedRun, paths: Sequence[str]) -> str:
    """How many trials there will be, and what they cost if that is known."""
    options = dict(run.options)
    targets = options.pop("target", ())
    if len(targets) == 1:
        (options["target"],) = targets
    try:
        found = plan(PlanRequest(), paths, store=run.store, given=options)
    except AssayError:  # the run reports what is wrong
        return count(len(paths), "path")
    trials = sum(suite.trials for suite in found.suites)
    if len(targets) > 1:  # the run says what they cost
        return f"{count(trials, 'trial')} of each target"
    cost = "" if found.cost_usd is None else f", about {money(found.cost_usd)}"
    return count(trials, "trial") + cost


def _ended(process: subprocess.Popen[bytes] | None, seconds: float) -> bool:
    if process is None:
        return True
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _cancel(process: subprocess.Popen[bytes] | None) -> None:
    """Cancel a run at once: its trials in flight answer an outdated question."""
    while process is not None and process.poll() is None:
        _interrupt(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(AGAIN)


def _let_finish(process: subprocess.Popen[bytes] | None) -> None:
    """Let trials in flight finish; another Ctrl-C cancels them too."""
    if process is None or process.poll() is not None:
        return
    _interrupt(process)
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            _interrupt(process)
        else:
            return


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    if _POSIX:
        process.send_signal(signal.SIGINT)
    else:
        process.terminate()


def _existing(paths: Sequence[Path]) -> list[str]:
    return [shown_path(path) for path in paths if path.exists()]


def _named(changes: Changes) -> str:
    """`agent.py and 2 more changed`."""
    files = [shown_path(file) for file in changes.files]
    if not files:
        return ""
    more = len(files) - MAX_NAMED
    named = ", ".join(files[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{named} changed"


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


def words_of(context: click.Context, without: Sequence[str]) -> Iterator[str]:
    """The options that were given, as words for another command."""
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or not given or name in without:
            continue
        value = context.params[name]
        if option.is_bool_flag:
            yield (option.opts if value else option.secondary_opts)[0]
        elif option.is_flag:
            if value == option.flag_value:
                yield option.opts[0]
        else:
            values = value if isinstance(value, tuple) else (value,)
            yield from (f"{option.opts[0]}={each}" for each in values)
