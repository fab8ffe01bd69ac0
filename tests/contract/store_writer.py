"""A process that writes to a SQLite store and says what was acknowledged; tests kill it.

    python store_writer.py FILE RUN COUNT [OPTIONS]

Each line of its output is the position of a trial whose future is done.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from assay.errors import StoreError
from assay.stores.sqlite import LOCK_TIMEOUT_SECONDS, SqliteStore
from assay.testing.stores import make_run, make_trial

IN_FLIGHT = 50
NOBODY = 65534


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("run")
    parser.add_argument("count", type=int)
    parser.add_argument("--max-file-bytes", type=int)
    parser.add_argument("--lock-timeout", type=float, default=LOCK_TIMEOUT_SECONDS)
    parser.add_argument("--as-nobody", action="store_true")
    options = parser.parse_args()
    if options.max_file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.max_file_bytes, options.max_file_bytes))
    if options.as_nobody and os.geteuid() == 0:  # root may write everywhere
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = SqliteStore(options.file, lock_timeout=options.lock_timeout)
    write(store, options.run, options.count)


def write(store: SqliteStore, run_id: str, count: int) -> None:
    store.begin(make_run(run_id))
    under_way: deque[tuple[int, Future[None]]] = deque()
    for position in range(count):
        trial = make_trial(position, run_id=run_id, result=b"r" * 1000)
        under_way.append((position, store.save(trial)))
        if len(under_way) >= IN_FLIGHT:
            acknowledge(*under_way.popleft())
    for position, future in under_way:
        acknowledge(position, future)
    store.close()


def acknowledge(position: int, future: Future[None]) -> None:
    future.result()
    print(position, flush=True)


if __name__ == "__main__":
    try:
        main()
    except StoreError as error:
        sys.exit(f"{error.slug}: {error}")
