"""How a judge is asked: one JSON object in reply, three attempts, and what it cost.

What is asked for is a `Form`. A reply that does not fill it in is sent back with what is
wrong. Only an object of the judge's own counts: one that it quotes from the material among
other words is no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from assay.errors import AssayError
from assay.evaluators.prompt import Material
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.model.values import UNIQUE_KEYS
from assay.ports import Cache, Request, Resources, Target

ATTEMPTS = 3
#: How much of a reply that could not be used is kept in results, and sent back to the judge.
KEPT, SENT_BACK = 500, 4000
#: A reply has one object, perhaps after a few quotations; nobody needs to look for hundreds.
_MOST_OBJECTS = 200


class Form(Protocol):
    """What a judge has to fill in. It is made for one question and remembers what it took."""

    #: How the reply looks, in words and an example.
    described: str

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the reply, as far as it is still wanted."""
        ...

    def fault(self, reply: dict[str, Any]) -> str:
        """Why an object is no proper reply; empty when it is one."""
        ...

    def take(self, reply: dict[str, Any]) -> str:
        """Keep a proper reply; says what is still missing, or nothing."""
        ...


def closed(keys: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys.

    Providers that hold a model to a schema want every key required and no others.
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
        """What all calls cost; None when that of one is not known, since the rest is no total."""
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
    """The judge gave nothing that can be used; `reply` is the last thing it said."""

    def __init__(self, reason: str, reply: str = "") -> None:
        super().__init__(reason)
        self.reply = reply


class Judge(msgspec.Struct, frozen=True):
    """A target that judges. `choice` are the evaluator's keys that chose it."""

    target: Target
    choice: tuple[str | None, str | None]
    cache: Cache | None

    @classmethod
    def find(cls, resources: Resources, target: str | None, model: str | None) -> Judge:
        return cls(resources.judge(target, model), (target, model), resources.cache)

    def spent(self, spending: Spending) -> dict[str, Any]:
        """What results say about the use of the judge."""
        return spending.to_dict(self.target.name)

    def errored(self, fault: JudgeFault, spending: Spending) -> EvaluationScore:
        said = {"reply": fault.reply[:KEPT]} if fault.reply else {}
        return EvaluationScore.errored(str(fault), **said, judge=self.spent(spending))

    async def fill_in(self, question: Question, spending: Spending) -> None:
        """Ask until the form is complete; raises JudgeFault when it does not get there."""
        key = self._key(question)
        remembered = self.cache.get(key) if self.cache is not None else None
        if remembered is not None and _recalled(question.form, remembered):
            spending.cached += 1
            return
        replies = await self._asked(question, spending)
        if self.cache is not None:
            self.cache.put(key, {"replies": replies})

    async def _asked(self, question: Question, spending: Spending) -> list[dict[str, Any]]:
        """The replies that were taken; usually one."""
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
                taken.append(found)
                wrong = form.take(found)
                if not wrong:
                    return taken
            messages += _sent_back(text, wrong)
        name = self.target.name
        raise JudgeFault(
            f"the judge {name!r} gave no usable reply in {ATTEMPTS} attempts: {wrong}", text
        )

    async def _ask(self, request: Request, spending: Spending) -> str:
        try:
            seen = await self.target.ask(request)
        except Exception as error:  # whatever a stranger's target does
            spending.calls += 1
            words = str(error) if isinstance(error, AssayError) else f"it raised {error!r}"
            raise JudgeFault(f"the judge {self.target.name!r} gave no answer: {words}") from error
        spending.add(seen)
        if seen.error is not None:
            raise JudgeFault(f"the judge {self.target.name!r} gave no answer: {seen.error}")
        return seen.response

    def _key(self, question: Question) -> str:
        """What the reply depends on, and which of several replies to the same it is."""
        said = [[message.role, message.text] for message in question.messages]
        which = [question.sample, question.repeat]
        judge = getattr(self.target, "identity", self.target.name)
        content = [judge, self.choice, said, question.form.schema(), which]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Question(msgspec.Struct, frozen=True, dict=True):
    """A form, the task in words, and the material; `sample` counts equal questions."""

    form: Form
    task: str
    material: Material
    repeat: int = 0
    sample: int = 0

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        return self.material.messages(self.task, self.form.described)


def _recalled(form: Form, remembered: dict[str, Any]) -> bool:
    """Does what the cache has fill in the form? Another version may have written it."""
    replies = remembered.get("replies")
    missing = "all of it"
    trial = deepcopy(form)  # what turns out to be half of it must leave no trace
    for reply in replies if isinstance(replies, list) else ():
        if not isinstance(reply, dict) or trial.fault(reply):
            return False
        missing = trial.take(reply)
    if missing:
        return False
    for reply in remembered["replies"]:
        form.take(reply)
    return True


def _sent_back(text: str, wrong: str) -> tuple[Message, Message]:
    said = text[:SENT_BACK] or "(an empty reply)"
    words = f"Something is wrong with that reply: {wrong}. Reply with one JSON object, no more."
    return Message("assistant", said), Message("user", words)


def own_object(text: str, form: Form, material: Material) -> dict[str, Any] | str:
    """The object that is the judge's verdict, or what is wrong with the reply.

    A reply that is an object as a whole, or in a code fence as a whole, is the verdict. Among
    other words it is the only proper one that is not quoted from the material.
    """
    whole = _whole(_without_fence(text.strip()))
    if whole is not None:
        return form.fault(whole) or whole
    found = list(_objects(text))
    own = [value for value in found if not material.holds(value)]
    proper = [value for value in own if not form.fault(value)]
    if len(proper) > 1:
        return f"it has {len(proper)} JSON objects that could be the verdict"
    if proper:
        return proper[0]
    if own:
        return form.fault(own[-1])
    if found:
        return "the only JSON objects in it are quoted from the material"
    return "no proper JSON object was found in it"


def _without_fence(text: str) -> str:
    if text.startswith("```") and text.endswith("```"):
        return text[:-3].partition("\n")[2]
    return text


def _whole(text: str) -> dict[str, Any] | None:
    try:
        value = UNIQUE_KEYS.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text; never one inside broken braces."""
    end = depth = 0
    for _ in range(_MOST_OBJECTS):
        start = text.find("{", end)
        if start < 0:
            return
        depth = max(0, depth - text.count("}", end, start))
        try:
            value, end = UNIQUE_KEYS.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            depth += 1
        else:
            if not depth:
                yield value
