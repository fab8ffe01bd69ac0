"""docs/server.md: its curl commands do what the page shows, and it names every route and code."""

from __future__ import annotations

import re
import shlex

import httpx2
import pytest
from pages import Page, code_words

from assay.ports import Store
from assay.server.app import create_app
from assay.server.envelope import CODES
from assay.server.feed import NAMES
from assay.settings import Settings
from server.conftest import agent, project, store
from server.live_server import live
from server.test_openapi import operations
from server.test_runs import FRANCE
from server.write_openapi import FILE

__all__ = ["agent", "project", "store"]  # fixtures of the tests of the server
ROOT = FILE.parents[1]
PAGE = Page.read(ROOT / "docs" / "server.md", ROOT)
SERVER = "http://127.0.0.1:8321"


def commands(text: str) -> list[list[str]]:
    """The curl commands of a block, each as its arguments."""
    words = shlex.split(text.replace("\\\n", " "))
    starts = [index for index, word in enumerate(words) if word == "curl"]
    ends = [*starts[1:], len(words)]
    return [words[start + 1 : end] for start, end in zip(starts, ends, strict=True)]


def curl(arguments: list[str], url: str) -> str:
    """What curl prints."""
    method, headers, body, address = "GET", {}, None, ""
    words = iter(arguments)
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words)
        else:
            assert word.startswith(f"{SERVER}/"), word
            address = url + word.removeprefix(SERVER)
    return httpx2.request(method, address, headers=headers, content=body).text


def test_the_commands_of_the_page_do_what_it_shows(project: Settings, store: Store) -> None:
    tried = 0
    with live(create_app(project, store)) as url:
        for block, after in zip(PAGE.blocks, [*PAGE.blocks[1:], None], strict=True):
            if block.language != "sh":
                continue
            assert after is not None
            assert after.words == ("text",)
            lines = after.text.splitlines()
            for arguments, line in zip(commands(block.text), lines, strict=True):
                printed = curl(arguments, url)
                pattern = ".*".join(map(re.escape, line.split("...")))
                assert re.fullmatch(pattern, printed), f"{block.line}: {printed}"
                tried += 1
                if f"{SERVER}/api/runs" in arguments:
                    _wait(url, printed)
    assert tried == 9


def _wait(url: str, printed: str) -> None:
    match = re.search(r'"runId":"([^"]+)"', printed)
    assert match is not None
    httpx2.get(f"{url}/api/runs/{match[1]}/events")


def test_every_route_is_on_the_page() -> None:
    told = set(re.findall(r"^\| `([A-Z]+ /api/[^`]*)` \|", PAGE.text, re.MULTILINE))
    assert told == {f"{method.upper()} {path}" for path, method, _ in operations()}


def test_every_code_is_on_the_page() -> None:
    rows = PAGE.table("Responses")
    told = {code_words(row["Code"])[0]: int(row["Status"]) for row in rows}
    assert told == {code: status for code, (status, _) in CODES.items()}


def test_every_event_is_on_the_page() -> None:
    told = {code_words(row["Event"])[0] for row in PAGE.table("Events")}
    assert told == {"progress", *NAMES.values()}


@pytest.mark.parametrize("name", [*FRANCE])
def test_every_field_of_a_test_case_is_on_the_page(name: str) -> None:
    assert name in {code_words(row["Field"])[0] for row in PAGE.table("Test cases")}
