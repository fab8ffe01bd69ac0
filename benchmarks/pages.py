"""The pages of a large run: how much they weigh, and the CPU time that the server takes for each.

    python benchmarks/pages.py PROJECT [--requests 20]

PROJECT is a folder with a store whose newest run is measured; `benchmarks/report.py --keep`
makes one. CPU time is that of the whole server, so that it hardly depends on what else runs.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

#: What is asked of a run, after its address.
LISTS = (
    ("first page", ""),
    ("failed, sorted by score", f"?filter={quote('outcome:failed')}&sort=score"),
    ("sorted by time", "?sort=-latency"),
    ("a tag", f"?filter={quote('tag:t1')}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("project", type=Path)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument(
        "--prepared", action="store_true", help="wait until the server has prepared the pages"
    )
    options = parser.parse_args()
    command = [sys.executable, "-m", "assay", "serve", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=options.project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://([\d.]+:\d+)", server.stdout.readline())
        assert found is not None
        if options.prepared:
            wait_until_idle(server.pid)
        measure(http.client.HTTPConnection(found[1], timeout=300), server.pid, options.requests)
    finally:
        server.terminate()
        server.wait()


def wait_until_idle(server: int) -> None:
    """Print the CPU time that the server used by itself, once it has used hardly any for 4 s."""
    used, before = cpu_seconds(server), 0.0
    while used - before > 0.1:
        time.sleep(4)
        before, used = used, cpu_seconds(server)
    print(f"{1000 * used:8.1f} ms CPU  to start and to prepare large runs", flush=True)


def measure(connection: http.client.HTTPConnection, server: int, requests: int) -> None:
    runs = get(connection, "/").decode()
    (first, *_) = re.findall(r'href="(/runs/[0-9a-f-]{36})"', runs)
    report("list of runs", connection, server, "/", requests)
    report("run, opened for the first time", connection, server, first, 1)
    for name, query in LISTS:
        report(name, connection, server, first + query, requests)
    page = get(connection, first).decode()
    (case, *_) = re.findall(r'href="(/runs/[^"]*/cases/[0-9]+[^"]*)"', page)
    report("one case", connection, server, case.replace("&amp;", "&"), requests)


def report(
    name: str, connection: http.client.HTTPConnection, server: int, path: str, requests: int
) -> None:
    """Print the CPU time and the size of a page."""
    before, began = cpu_seconds(server), time.perf_counter()
    for _ in range(requests):
        page = get(connection, path)
    took = 1000 * (cpu_seconds(server) - before) / requests
    waited = 1000 * (time.perf_counter() - began) / requests
    print(f"{took:8.1f} ms CPU  {waited:8.1f} ms  {len(page) / 1000:7.1f} kB   {name}", flush=True)


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path, headers={"accept": "text/html"})
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, (path, body[:500])
    return body


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and its threads, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
