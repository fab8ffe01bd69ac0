"""A plain model of the contract, and random sequences of requests that compare a server with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Settings
from contract.case_model import FULL
from server.conftest import ADDRESS, Clock

URL = "/api/test-cases"
JSON = {"content-type": "application/json"}
SEQUENCES = settings(max_examples=1000 if FULL else 25, stateful_step_count=15)
IDS = [f"550e8400-e29b-41d4-a716-44665544000{n}" for n in range(3)]
LETTERS = "aAß%_é\U0001f3f3"
TEXT = st.text(LETTERS, min_size=1, max_size=3)
#: As long as is allowed somewhere, and one character longer.
LONG = st.builds(
    str.__mul__, st.sampled_from("a\U0001f3f3"), st.sampled_from([500, 501, 10_000, 10_001])
)
SHORT = st.builds(str.__mul__, st.sampled_from("aé"), st.sampled_from([0, 50, 51]))
WRONG: st.SearchStrategy[Any] = st.sampled_from([None, 7, True, {}, [], "a\0", "\ud800"])
#: What a field may be given, right or wrong.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "input": TEXT | LONG | SHORT | WRONG,
    "expected_output": TEXT | LONG | SHORT | WRONG,
    "description": TEXT | LONG | SHORT | WRONG,
    "tags": st.lists(TEXT, max_size=11) | st.lists(SHORT | WRONG, max_size=2) | WRONG,
}
RIGHT = {"description": st.none() | TEXT, "tags": st.lists(TEXT, max_size=3)}
GOOD = st.fixed_dictionaries({"input": TEXT, "expected_output": TEXT}, optional=RIGHT)
ANY = st.fixed_dictionaries({}, optional={**VALUES, "color": st.just("red")})
LIMITS: dict[str, tuple[int, int]] = {
    "input": (1, 10_000),
    "expected_output": (1, 10_000),
    "description": (0, 500),
}
Row = dict[str, Any]


def fault_of_text(text: Any, least: int, most: int) -> str | None:
    if not isinstance(text, str):
        return "INVALID_INPUT"
    if not least <= len(text) <= most:
        return "INVALID_LENGTH"
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        return "INVALID_INPUT"
    return None


def fault_of(name: str, value: Any) -> str | None:
    """The code of what is wrong with a field."""
    if name == "description" and value is None:
        return None
    if name != "tags":
        return fault_of_text(value, *LIMITS[name])
    if not isinstance(value, list):
        return "INVALID_INPUT"
    if len(value) > 10:
        return "INVALID_LENGTH"
    return next((f for tag in value if (f := fault_of_text(tag, 1, 50))), None)


def fault(body: Row, required: tuple[str, ...]) -> str | None:
    """The code of the first problem in the order of the fields."""
    for name in VALUES:
        if name not in body:
            if name in required:
                return "MISSING_FIELD"
        elif found := fault_of(name, body[name]):
            return found
    return "INVALID_INPUT" if "color" in body else None


class Machine(RuleBasedStateMachine):
    """Every request is sent to the server and to the model; what they say is compared."""

    fresh: Callable[[], Store]

    @initialize()
    def begin(self) -> None:
        self.clock, self.stack = Clock(), ExitStack()
        store = self.fresh()
        self.stack.callback(store.close)
        app = create_app(Settings(Path()), store, now=self.clock)
        self.client = self.stack.enter_context(TestClient(app, ADDRESS))
        #: All versions of each by id, in the order of adding.
        self.known: dict[str, list[Row]] = {}
        self.live: list[str] = []

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()

    @rule(seconds=st.integers(-5, 5))
    def time_passes(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)

    @rule(body=GOOD | ANY, own=st.none() | st.sampled_from(IDS))
    def create(self, body: Row, own: str | None) -> None:
        given = body if own is None else body | {"id": own.upper()}
        answer = self.sent("POST", URL, given)
        code = fault(body, ("input", "expected_output"))
        if code is None and own in self.known:
            code = "DUPLICATE_ID"
        if self.refused(answer, 400, code):
            return
        assert answer.status_code == 201
        made = answer.json()["data"]
        assert own in (None, made["id"])
        assert str(UUID(made["id"])) == made["id"]
        time = self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        row: Row = {"description": None, "tags": []} | body
        assert made == row | {"id": made["id"], "created_at": time, "modified_at": time}
        self.known[made["id"]] = [made]
        self.live.append(made["id"])

    @rule(data=st.data(), body=ANY, back=st.booleans())
    def change(self, data: st.DataObject, body: Row, back: bool) -> None:
        identity = self.one(data)
        before = self.known.get(identity, [{}])[-1]
        if back:  # what was read may be sent back
            body = before | body
        answer = self.sent("PUT", f"{URL}/{identity}", body)
        if self.refused(answer, 404, None if identity in self.live else "NOT_FOUND"):
            return
        if self.refused(answer, 400, fault(body, ())):
            return
        made = answer.json()["data"]
        assert answer.status_code == 200
        assert made["modified_at"] > before["modified_at"]
        assert made["modified_at"] >= self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert made == before | body | {"modified_at": made["modified_at"]}
        self.known[identity].append(made)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        identity = self.one(data)
        answer = self.client.delete(f"{URL}/{identity}")
        if not self.refused(answer, 404, None if identity in self.live else "NOT_FOUND"):
            assert (answer.status_code, answer.content) == (204, b"")
            self.live.remove(identity)

    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        identity = self.one(data)
        answer = self.client.get(f"{URL}/{identity}")
        if not self.refused(answer, 404, None if identity in self.live else "NOT_FOUND"):
            assert answer.json()["data"] == self.known[identity][-1]
        answer = self.client.get(f"{URL}/{identity}/versions")
        if not self.refused(answer, 404, None if identity in self.known else "NOT_FOUND"):
            known = [row | {"version": n} for n, row in enumerate(self.known[identity], 1)]
            assert answer.json()["data"]["versions"] == known

    @rule(
        limit=st.integers(0, 4) | st.sampled_from([1000, 1001]),
        skip=st.integers(-1, 4),
        tag=st.none() | st.text(LETTERS, max_size=2),
    )
    def page(self, limit: int, skip: int, tag: str | None) -> None:
        query = {"limit": limit, "skip": skip} | ({} if tag is None else {"tag": tag})
        answer = self.client.get(URL, params=query)
        right = 1 <= limit <= 1000 and skip >= 0
        if self.refused(answer, 400, None if right else "INVALID_INPUT"):
            return
        rows = [self.known[identity][-1] for identity in self.live]
        if tag is not None:
            rows = [r for r in rows if any(tag.casefold() in t.casefold() for t in r["tags"])]
        shown = rows[skip : skip + limit]
        counts = {"count": len(shown), "total": len(rows)}
        assert answer.json()["data"] == {"test_cases": shown} | counts

    def one(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.known, IDS[0], "nobody"]))

    def sent(self, method: str, url: str, body: Row) -> Any:
        content = json.dumps(body)  # halves of surrogate pairs are escaped: they can be sent so
        return self.client.request(method, url, content=content, headers=JSON)

    def refused(self, answer: Any, status: int, code: str | None) -> bool:
        """Is it to be refused? Then it was, and in the envelope."""
        if code is not None:
            answer_body = answer.json()
            assert (answer.status_code, answer_body["error"]["code"]) == (status, code), answer_body
            assert (answer_body["success"], answer_body["data"]) == (False, None)
        return code is not None


def compare_requests(fresh: Callable[[], Store]) -> None:
    """Random sequences of requests to servers of new stores, each compared with the model."""
    machine = type("Requests", (Machine,), {"fresh": staticmethod(fresh)})
    run_state_machine_as_test(machine, settings=SEQUENCES)
