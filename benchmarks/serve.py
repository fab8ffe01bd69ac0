"""The cost of the server: requests per second, relative to bare FastAPI handlers with the same SQL.

    python benchmarks/serve.py [--requests 3000] [--cases 100000] [--seconds 30]

The same client asks both alternately, over persistent connections. A bare handler checks nothing,
returns a dict, and commits every test case by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel

from assay.model.test_case import NewTestCase
from assay.stores.sqlite import SqliteStore

CONNECTIONS = 16
ROUNDS = 5
WRITERS = 32
BODY = {"input": "What is the capital of France?", "expected_output": "Paris", "tags": ["geo"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
        return
    with tempfile.TemporaryDirectory() as folder:
        beside_bare(Path(folder), options.requests)
        pages(Path(folder), options.cases)
        writers(Path(folder), options.seconds)


def beside_bare(folder: Path, requests: int) -> None:
    """Get, list and create, ours and bare alternately."""
    with served(home(folder / "ours", 1000)) as ours, bare_served(home(folder / "bare", 1000)) as b:
        identity = asyncio.run(one(ours, get("/api/test-cases?limit=1")))
        other = asyncio.run(one(b, get("/api/test-cases?limit=1")))
        ids = [data["data"]["test_cases"][0]["id"] for data in (identity, other)]
        create = post("/api/test-cases", BODY)
        work = {
            "get": [get(f"/api/test-cases/{i}") for i in ids],
            "list of 50": [get("/api/test-cases?limit=50")] * 2,
            "create": [create, create],
        }
        for name, (mine, theirs) in work.items():
            count = requests // 3 if name == "list of 50" else requests
            rates = [(rate(ours, mine, count), rate(b, theirs, count)) for _ in range(ROUNDS)]
            ratio = median(a / c for a, c in rates)
            shown = ", ".join(f"{median(column):,.0f}/s" for column in zip(*rates, strict=True))
            print(f"{ratio:6.2f} x   {name}: rate / bare FastAPI's   [{shown}]", flush=True)


def pages(folder: Path, cases: int) -> None:
    """The first page of few and of many test cases, and the first page with a tag."""
    first = get("/api/test-cases")
    with served(home(folder / "few", 100)) as few, served(home(folder / "many", cases)) as many:
        ratios = [rate(few, first, 300) / rate(many, first, 300) for _ in range(ROUNDS)]
        what = f"first page at {cases:,} test cases: time / the page's at 100"
        print(f"{median(ratios):6.2f} x   {what}")
        tagged(many, "few tags", "geo", "tag-7", "7", "none")
    with served(home(folder / "different", cases, own_tags)) as different:
        what = f"{10 * cases:,} different tags"
        tagged(different, what, "none", "tag-9-9", "9-9", "tag")


def tagged(port: int, what: str, *tags: str) -> None:
    """The first page with each of the tags."""
    for tag in tags:
        request = get(f"/api/test-cases?tag={tag}")
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            found = asyncio.run(one(port, request))
            times.append(time.perf_counter() - start)
        total = found["data"]["total"]
        shown = f"first page with the tag {tag!r}, of {total:,}, among {what}"
        print(f"{1000 * median(times):6.1f} ms  {shown}", flush=True)


def writers(folder: Path, seconds: float) -> None:
    """Many concurrent writers: no errors, and nothing acknowledged is lost."""
    with served(home(folder / "written", 0)) as port:
        made = asyncio.run(write_for(port, seconds))
        kept = asyncio.run(one(port, get("/api/test-cases?limit=1")))["data"]["total"]
    print(f"{len(made):,} test cases by {WRITERS} writers in {seconds:g} s, {kept:,} are kept")
    assert kept == len(made) == len(set(made))


async def write_for(port: int, seconds: float) -> list[str]:
    deadline, made = time.perf_counter() + seconds, list[str]()

    async def write() -> None:
        async with Connection(port) as connection:
            while time.perf_counter() < deadline:
                status, body = await connection.ask(post("/api/test-cases", BODY))
                assert status == 201, body
                made.append(json.loads(body)["data"]["id"])

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    return made


class Connection:
    """A persistent connection that sends one request after the other."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        return int(head[9:12]), await self.reader.readexactly(int(length[1]))


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data


async def one(port: int, request: bytes) -> Any:
    async with Connection(port) as connection:
        _, body = await connection.ask(request)
        return json.loads(body)


def rate(port: int, request: bytes, count: int) -> float:
    """Requests per second."""

    async def ask(share: int) -> None:
        async with Connection(port) as connection:
            for _ in range(share):
                status, body = await connection.ask(request)
                assert status in (200, 201), body

    async def everything() -> None:
        await asyncio.gather(*(ask(count // CONNECTIONS) for _ in range(CONNECTIONS)))

    start = time.perf_counter()
    asyncio.run(everything())
    return count // CONNECTIONS * CONNECTIONS / (time.perf_counter() - start)


def few_tags(number: int) -> tuple[str, ...]:
    return (f"tag-{number % 1000}", "geo") if number % 2 else (f"tag-{number % 1000}",)


def own_tags(number: int) -> tuple[str, ...]:
    return tuple(f"tag-{number}-{i}" for i in range(10))


def home(folder: Path, cases: int, tags: Callable[[int], tuple[str, ...]] = few_tags) -> Path:
    """A project with this many test cases."""
    (folder / ".git").mkdir(parents=True)
    store = SqliteStore(folder / ".assay" / "assay.db")
    now = datetime.now(UTC)
    pending = []
    for number in range(cases):
        new = NewTestCase(f"question {number}", f"answer {number}", None, tags(number))
        pending.append(store.test_cases.add(new, now))
    for future in pending:
        future.result()
    store.close()
    return folder


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Run our server; yields its port."""
    command = [str(Path(sys.executable).with_name("assay")), "serve", "--port", "0"]
    with started(command, folder) as port:
        yield port


@contextmanager
def bare_served(folder: Path) -> Iterator[int]:
    """Run the bare handlers; yields their port."""
    with started([sys.executable, __file__, "--bare", ".assay/assay.db"], folder) as port:
        yield port


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[int]:
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


class New(BaseModel):
    """The body from which the bare handler creates a test case."""

    input: str
    expected_output: str
    description: str | None = None
    tags: list[str] = []


def bare(file: Path) -> None:
    """Handlers as one would first write them: no checks, and a commit per request."""
    import uvicorn
    from fastapi import FastAPI

    from assay.stores import sql_test_cases as sql

    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    app = FastAPI()

    names = ("id", "input", "expected_output", "description", "tags", "created_at", "modified_at")

    def shown(row: Any) -> dict[str, Any]:
        case = dict(zip(names, row, strict=False))
        return case | {"tags": json.loads(case["tags"])}

    def envelope(data: Any) -> dict[str, Any]:
        return {"success": True, "data": data, "error": None}

    @app.get("/api/test-cases/{id}")
    async def get_one(id: str) -> dict[str, Any]:  # noqa: A002 - the name in the path
        row = connection.execute(sql._GET, (id,)).fetchone()
        return envelope(shown(row[2:]))

    @app.get("/api/test-cases")
    async def get_page(limit: int = 100, skip: int = 0) -> dict[str, Any]:
        rows = connection.execute(sql._PAGE, (limit, skip)).fetchall()
        cases = [shown(row[1:]) for row in rows]
        return envelope({"test_cases": cases, "count": len(cases), "total": rows[0][0]})

    @app.post("/api/test-cases", status_code=201)
    async def create(new: New) -> dict[str, Any]:
        identity, now = str(uuid.uuid4()), datetime.now(UTC).isoformat()
        tags = json.dumps(new.tags)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT 1 FROM test_case WHERE id = ?", (identity,)).fetchone()
        folded = "\xff".join(new.tags).encode("latin-1")
        join = "UPDATE tag_set SET total = total + 1 WHERE folded = ? RETURNING number"
        found = connection.execute(join, (folded,)).fetchall()
        number = found[0][0] if found else None
        ((case,),) = connection.execute(sql._ADD, (identity, 1, now, number)).fetchall()
        texts = (new.input, new.expected_output, new.description, tags, now)
        connection.execute(sql._ADD_VERSION, (case, 1, *texts))
        connection.execute(sql._COUNT, (1,))
        connection.execute("COMMIT")
        return envelope(shown((identity, *texts[:3], tags, now, now)))

    class AnnouncingServer(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            port = self.servers[0].sockets[0].getsockname()[1]
            print(f"bare on http://127.0.0.1:{port}", flush=True)

    AnnouncingServer(
        uvicorn.Config(app, port=0, loop="auto", http="httptools", log_level="error")
    ).run()


if __name__ == "__main__":
    main()
