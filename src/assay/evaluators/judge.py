"""Asks a judge for one JSON object, in up to three attempts, and adds up the costs.

A `Form` describes the reply. A reply that does not fit is sent back with what is wrong. Only the
judge's own object counts: one that it quotes from the material amid other text is not a verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from assay.errors import AssayError
from assay.evaluators.prompt import Material
from assay.evaluators.verdict import shortened
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.model.values import UNIQUE_KEYS
from assay.ports import Cache, Request, Resources, Target
from assay.redaction import cut

ATTEMPTS = 3
#: How much of an unusable reply is kept in the results, and sent back to the judge.
KEPT, SENT_BACK = 500, 4000
#: Where an object begins, or a list of objects.
_OPENING = re.compile(r"\{|\[(?=\s*\{)")
#: How many objects of a reply are tried: it needs one, perhaps after a few quotations.
_MAX_OBJECTS = 200


class Form(Protocol):
    """The reply that a judge has to give to one question; it keeps the replies it accepted."""

    #: The form of the reply, in words and with an example.
    described: str

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the reply, without the parts that were taken already."""
        ...

    def fault(self, reply: dict[str, Any]) -> str:
        """Why an object is not a valid reply; empty if it is one."""
        ...

    def take(self, reply: dict[str, Any]) -> str:
        """Keep a valid reply; returns what is still missing, empty if nothing is."""
        ...


def closed(keys: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys.

    Providers that enforce a schema want every key to be required, and no others allowed.
    """
    return {
        "type": "object",
        "properties": keys,
        "required": list(keys),
        "additionalProperties": False,
    }


class Spending(msgspec.Struct):
    """The calls made to a judge, what they cost, and how many questions the cache answered."""

    calls: int = 0
    cached: int = 0
    usage: dict[str, int] = {}
    costs: list[float | None] = []

    @property
    def cost_usd(self) -> float | None:
        """The cost of all calls; None if that of any call is unknown."""
        known = [cost for cost in self.costs if cost is not None]
        return sum(known) if known and len(known) == len(self.costs) else None

    def add(self, seen: Observation) -> None:
        self.calls += 1
        for name, tokens in (seen.usage.to_dict() if seen.usage else {}).items():
            self.usage[name] = self.usage.get(name, 0) + tokens
        self.costs.append(seen.cost_usd)

    def to_dict(self, target: str) -> dict[str, Any]:
        pairs = {
            "usage": self.usage or None,
            "costUsd": self.cost_usd,
            "cached": self.cached or None,
        }
        known = {key: value for key, value in pairs.items() if value is not None}
        return {"target": target, "calls": self.calls} | known


class JudgeFault(Exception):
    """The judge gave no usable reply; `reply` is its last one."""

    def __init__(self, reason: str, reply: str = "") -> None:
        super().__init__(reason)
        self.reply = reply


class Judge(msgspec.Struct, frozen=True):
    """A target that judges; `choice` has the evaluator's keys that selected it."""

    target: Target
    choice: tuple[str | None, str | None]
    cache: Cache | None

    @classmethod
    def find(cls, resources: Resources, target: str | None, model: str | None) -> Judge:
        return cls(resources.judge(target, model), (target, model), resources.cache)

    def spent(self, spending: Spending) -> dict[str, Any]:
        """The use of the judge, for the details of a score."""
        return spending.to_dict(self.target.name)

    def errored(self, fault: JudgeFault, spending: Spending) -> EvaluationScore:
        reply = {"reply": cut(fault.reply, KEPT)} if fault.reply else {}
        return EvaluationScore.errored(str(fault), **reply, judge=self.spent(spending))

    async def fill_in(self, question: Question, spending: Spending) -> None:
        """Ask until the form is complete; raises JudgeFault if it stays incomplete."""
        key = self._cache_key(question)
        cached = self.cache.get(key) if self.cache is not None else None
        if cached is not None and _fill_from_cache(question.form, cached):
            spending.cached += 1
            return
        replies = await self._ask_until_complete(question, spending)
        if self.cache is not None:
            self.cache.put(key, {"replies": replies})

    async def _ask_until_complete(
        self, question: Question, spending: Spending
    ) -> list[dict[str, Any]]:
        """The replies that the form took; usually one."""
        form, messages = question.form, question.messages
        taken: list[dict[str, Any]] = []
        text = wrong = ""
        for _ in range(ATTEMPTS):
            request = Request(messages, repeat=question.repeat, reply_schema=form.schema())
            text = await self._ask(request, spending)
            found = own_object(text, form, question.material)
            if isinstance(found, str):
                wrong = found
            else:
                found = shortened(found)
                taken.append(found)
                wrong = form.take(found)
                if not wrong:
                    return taken
            messages += _send_back(text, wrong)
        name = self.target.name
        raise JudgeFault(
            f"the judge {name!r} gave no usable reply in {ATTEMPTS} attempts: {wrong}", text
        )

    async def _ask(self, request: Request, spending: Spending) -> str:
        try:
            seen = await self.target.ask(request)
        except Exception as error:  # a plugin's target may raise anything
            spending.calls += 1
            words = str(error) if isinstance(error, AssayError) else f"it raised {error!r}"
            raise JudgeFault(f"the judge {self.target.name!r} gave no answer: {words}") from error
        spending.add(seen)
        if seen.error is not None:
            raise JudgeFault(f"the judge {self.target.name!r} gave no answer: {seen.error}")
        return seen.response

    def _cache_key(self, question: Question) -> str:
        """A hash of all that the reply depends on; samples and repeats have keys of their own."""
        messages = [[message.role, message.text] for message in question.messages]
        which = [question.sample, question.repeat]
        judge = getattr(self.target, "identity", self.target.name)
        content = [judge, self.choice, messages, question.form.schema(), which]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Question(msgspec.Struct, frozen=True, dict=True):
    """A form, the task in words, and the material; `sample` numbers equal questions."""

    form: Form
    task: str
    material: Material
    repeat: int = 0
    sample: int = 0

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        return self.material.messages(self.task, self.form.described)


def _fill_from_cache(form: Form, cached: dict[str, Any]) -> bool:
    """Fill in the form; False if the entry does not fit: another version may have written it."""
    replies = cached.get("replies")
    missing = "all of it"
    trial = deepcopy(form)  # an incomplete entry must not change the form
    for reply in replies if isinstance(replies, list) else ():
        if not isinstance(reply, dict) or trial.fault(reply):
            return False
        missing = trial.take(reply)
    if missing:
        return False
    for reply in cached["replies"]:
        form.take(reply)
    return True


def _send_back(text: str, wrong: str) -> tuple[Message, Message]:
    reply = cut(text, SENT_BACK) or "(an empty reply)"
    words = f"This reply is not valid: {wrong}. Reply with one JSON object and nothing else."
    return Message("assistant", reply), Message("user", words)


def own_object(text: str, form: Form, material: Material) -> dict[str, Any] | str:
    """The object that is the judge's verdict, or what is wrong with the reply.

    If the whole reply is an object, perhaps in a code fence, that is the verdict. Otherwise it is
    the only valid object in the reply that is neither in a list nor quoted from the material.
    """
    whole = _parse_object(_without_fence(text.strip()))
    if whole is not None:
        return form.fault(whole) or whole
    found = list(_objects(text))
    own = [value for value in found if not material.holds(value)]
    valid = [value for value in own if not form.fault(value)]
    if len(valid) > 1:
        return f"it has {len(valid)} JSON objects that could be the verdict"
    if valid:
        return valid[0]
    if own:
        return form.fault(own[-1])
    if found:
        return "the only JSON objects in it are quoted from the material"
    return "no valid JSON object was found in it"


def _without_fence(text: str) -> str:
    if text.startswith("```") and text.endswith("```"):
        return text[:-3].partition("\n")[2]
    return text


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = UNIQUE_KEYS.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, but none in a list or inside unbalanced braces."""
    end = depth = 0
    in_broken_list = False
    for _ in range(_MAX_OBJECTS):
        opening = _OPENING.search(text, end)
        if opening is None:
            return
        start = opening.start()
        depth = max(0, depth - text.count("}", end, start))
        try:
            value, end = UNIQUE_KEYS.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            in_broken_list = text[start] == "["
            depth += not in_broken_list
        else:
            if not depth and not in_broken_list and isinstance(value, dict):
                yield value
            in_broken_list = False
