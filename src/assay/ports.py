"""The extension contract: what a stranger implements to join in.

A port is registered under an entry-point group of its name, by strangers and by us:

    [project.entry-points."assay.loaders"]       file suffix -> Loader
    [project.entry-points."assay.evaluators"]    type name -> subclass of EvaluatorSpec
    [project.entry-points."assay.targets"]       provider name -> subclass of TargetSpec
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from assay.errors import UsageError
from assay.model.case import EvalCase, Suite
from assay.model.context import Context
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.settings import Settings


class Loader(Protocol):
    """Reads eval files of one format. A module with these two functions will do.

    It is chosen by the longest registered suffix that the file's name ends with.
    """

    def load(self, file: Path, settings: Settings) -> Suite:
        """The file's suite; raises EvalFileErrors with all of its problems."""
        ...

    def recognises(self, file: Path) -> str:
        """Why a file met in a directory is no eval file; empty when it is one.

        A file with `.eval.` before its suffix is one, whatever it holds.
        """
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What a target is asked: messages, and the case they came from when there is one.

    `reply_schema` asks for a JSON reply; a target that cannot promise one ignores it.
    """

    messages: tuple[Message, ...]
    case: EvalCase | None = None
    repeat: int = 0
    reply_schema: Mapping[str, Any] | None = None


class Target(Protocol):
    """The agent under test, or a judge. One instance serves many requests at once."""

    #: What results call it, and what tells two judges apart: `openai:gpt-4`.
    name: str

    async def ask(self, request: Request) -> Observation:
        """One attempt at one answer; raises TargetError when there is none."""
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        ...


class Cache(Protocol):
    """Remembers replies by the content of their question."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, value: dict[str, Any]) -> None: ...


def no_judge(target: str | None, model: str | None) -> Target:
    """The judge of whoever set none."""
    raise UsageError("no judge is set: name one under 'judge' in assay.yaml")


@dataclass(frozen=True, slots=True)
class Resources:
    """What evaluators may use beside the case: given once, when they are prepared.

    `judge` finds the target that judges, by the evaluator's `target` and `model`; it raises
    UsageError when there is none. `sources` hold the data of `{{seed:...}}` and
    `{{snapshot:...}}` tokens.
    """

    judge: Callable[[str | None, str | None], Target] = no_judge
    sources: Mapping[str, Any] = field(default_factory=dict)
    cache: Cache | None = None


#: An evaluator made ready: what it says about one observation, now or soon.
Check = Callable[[Context], EvaluationScore | Awaitable[EvaluationScore]]


class Evaluator(Protocol):
    """An EvaluatorSpec that can judge. Its fields are its keys in eval files.

    It keeps no state: one instance judges many observations at the same time.
    """

    def evaluate(self, context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
        """Judge one observation. What it raises makes the evaluator errored, not failed."""
        ...


class Preparable(Protocol):
    """An EvaluatorSpec with work that is done once for all observations."""

    def prepare(self, resources: Resources) -> Check:
        """The check with everything compiled and every judge found; may raise UsageError."""
        ...
