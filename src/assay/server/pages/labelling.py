"""`/label/{run}`: people label answers without seeing the judge's verdict."""

from __future__ import annotations

import asyncio
import re
import shlex
from functools import partial
from urllib.parse import quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from assay.comparison.outcomes import find_run
from assay.model.comparison import CaseRef
from assay.model.label import AnswerLabel
from assay.model.run import RunRecord
from assay.model.test_case import storable
from assay.ports import Store
from assay.server.envelope import ApiError, invalid
from assay.server.forms import read_form
from assay.server.pages.label_views import ShownAnswer, answer_of, mark_of, standing_of
from assay.server.pages.rendering import page, render
from assay.server.runs import requested_run
from assay.server.schemas import MAX_NAME, uuid_or_none
from assay.server.state import State, state_of
from assay.service.answer_labels import Labelled, put_label, remove_label
from assay.service.cases import case_at
from assay.service.labelling import LabelQueue

LABEL = "/label"
#: Keeps the name of the author in the browser; it is a name, not a secret.
AUTHOR = "assay-author"
_KEPT = f"Path={LABEL}; Max-Age={365 * 24 * 3600}; HttpOnly; SameSite=Lax"
_VERDICTS = {"pass": True, "fail": False}
_POSITION = re.compile("[0-9]{1,9}")


async def label_page(request: Request) -> Response:
    """The next answer to label; before that, the form for the name of the author."""
    record = await _run(request)
    if isinstance(record, Response):
        return record
    state, author = state_of(request), _author(request)
    queues = await _queues(state, record)
    queue = _queue(queues, request.query_params.get("judge", ""))
    labels, quoted = dict[CaseRef, AnswerLabel](), ""
    answer: ShownAnswer | None = None
    if queue is not None:
        labels, quoted = await _labels(state, record, queue), shlex.quote(queue.judge.evaluator)
        at = _wanted(queue, labels, request) if author else None
        if at is not None:
            answer = await asyncio.to_thread(_read, state.store, record, at, queue, labels)
    return render(
        "label.html",
        request,
        run=record,
        queues=queues,
        queue=queue,
        author=author,
        answer=answer,
        labels=labels,
        said=request.query_params.get("said", ""),
        standing=None if queue is None else standing_of(queue, labels, author),
        quoted_judge=quoted,
        max_name=MAX_NAME,
    )


def _read(
    store: Store, record: RunRecord, at: int, queue: LabelQueue, labels: dict[CaseRef, AnswerLabel]
) -> ShownAnswer:
    return answer_of(case_at(store, record, at), queue, labels)


async def set_author(request: Request) -> Response:
    """Keep the name of the author in the browser, and go on to the answers."""
    record = await requested_run(request.path_params["run"], request)
    form = await read_form(request)
    author = form.get("author", "").strip()
    if not 1 <= len(author) <= MAX_NAME or not storable(author):
        raise invalid(f"A name has 1 to {MAX_NAME} characters")
    cookie = f"{AUTHOR}={quote(author, safe='')}; {_KEPT}"
    return RedirectResponse(_address(record, form.get("judge", "")), 303, {"set-cookie": cookie})


async def put(request: Request) -> Response:
    """Keep the label of an answer, and go on to the next."""
    record, queue, form = await _posted(request)
    position, verdict = _position(form.get("position", ""), queue), form.get("verdict", "")
    if verdict not in _VERDICTS:
        raise invalid("A verdict is 'pass' or 'fail'")
    state = state_of(request)
    given = Labelled(_VERDICTS[verdict], _required_author(request), queue.judge.evaluator)
    if form.get("case") != mark_of(queue.answers[position].ref):
        raise invalid("This is not the answer that was shown: open the page again, then label it")
    await asyncio.to_thread(put_label, state.store, record, position, given, state.now())
    more = {"after": str(position), "said": verdict}
    return RedirectResponse(_address(record, queue.judge.evaluator, **more), 303)


async def undo(request: Request) -> Response:
    """Remove the newest label of the author, and show its answer again."""
    record, queue, _ = await _posted(request)
    state, author = state_of(request), _required_author(request)
    labels = await _labels(state, record, queue)
    mine = [label for label in labels.values() if label.author == author]
    if not mine:
        return RedirectResponse(_address(record, queue.judge.evaluator), 303)
    last = max(mine, key=lambda label: label.created_at)
    at = queue.positions[CaseRef(last.suite, last.case_id)]
    given = Labelled(False, author, queue.judge.evaluator)
    await asyncio.to_thread(remove_label, state.store, record, at, given)
    return RedirectResponse(_address(record, queue.judge.evaluator, at=str(at)), 303)


async def _posted(request: Request) -> tuple[RunRecord, LabelQueue, dict[str, str]]:
    record = await requested_run(request.path_params["run"], request)
    form = await read_form(request)
    queue = _queue(await _queues(state_of(request), record), form.get("judge", ""))
    if queue is None:
        raise ApiError("NOT_FOUND", "No judge judged an answer of this run")
    return record, queue, form


async def _run(request: Request) -> RunRecord | Response:
    """The run in the path, or a redirection to it if the path has another name of it."""
    reference = request.path_params["run"]
    if uuid_or_none(reference) is not None:
        return await requested_run(reference, request)
    found = await asyncio.to_thread(find_run, reference, state_of(request).store)
    return RedirectResponse(_address(found, request.query_params.get("judge", "")), 303)


async def _queues(state: State, record: RunRecord) -> list[LabelQueue]:
    kept = state.label_queues.find(record)
    if kept is not None:
        return kept
    return await state.scan(partial(state.label_queues.make, state.store, record))


def _queue(queues: list[LabelQueue], name: str) -> LabelQueue | None:
    """The queue of a judge; that of the first one with answers without a name."""
    if name:
        found = next((queue for queue in queues if queue.judge.evaluator == name), None)
        if found is None:
            raise ApiError("NOT_FOUND", f"No judge of the run is called {name!r}")
        return found
    return next((queue for queue in queues if queue.answers), None)


async def _labels(state: State, record: RunRecord, queue: LabelQueue) -> dict[CaseRef, AnswerLabel]:
    return queue.labels(await asyncio.to_thread(state.store.labels.of_run, record.id))


def _wanted(queue: LabelQueue, labels: dict[CaseRef, AnswerLabel], request: Request) -> int | None:
    """The answer that the address names, or else the next one without a label."""
    given = request.query_params
    if "at" in given:
        return _position(given["at"], queue)
    after = given.get("after", "")
    return queue.next_open(labels, int(after) if _POSITION.fullmatch(after) else None)


def _position(given: str, queue: LabelQueue) -> int:
    if _POSITION.fullmatch(given) and int(given) in queue.answers:
        return int(given)
    raise ApiError("NOT_FOUND", f"The judge {queue.judge.evaluator!r} judged no such answer")


def _author(request: Request) -> str:
    """The name in the cookie; empty if there is none, or one that cannot be stored."""
    name = unquote(request.cookies.get(AUTHOR, "")).strip()
    return name if len(name) <= MAX_NAME and storable(name) else ""


def _required_author(request: Request) -> str:
    author = _author(request)
    if not author:
        raise invalid("Say first who labels: the cookie with the name is missing")
    return author


def _address(record: RunRecord, judge: str, **more: str) -> str:
    query = urlencode({name: value for name, value in {"judge": judge, **more}.items() if value})
    return f"{LABEL}/{record.id}" + (f"?{query}" if query else "")


_ONE = f"{LABEL}/{{run}}"
ROUTES = [
    page(_ONE, label_page, "judge", "at", "after", "said"),
    page(_ONE, put, method="POST"),
    page(f"{_ONE}/author", set_author, method="POST"),
    page(f"{_ONE}/undo", undo, method="POST"),
]
