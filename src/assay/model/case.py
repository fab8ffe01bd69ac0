"""EvalCase and EvalSuite: what is asked and expected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

from msgspec.structs import asdict, replace

from assay.model.evaluator import EvaluatorSpec
from assay.model.expectations import Expected
from assay.model.message import Message, ToolCall
from assay.model.rubric import Rubric
from assay.problems import Problem
from assay.record import Record

Tier = Literal["golden", "labeled", "regression", "rubric", "suite"]
#: Cases of these tiers are critical by default.
CRITICAL_TIERS: frozenset[Tier] = frozenset({"golden", "regression"})


class Origin(NamedTuple):
    """Where something was written; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def place(self) -> str:
        """The file and the line, if it has one."""
        return f"{self.file}:{self.line}" if self.line else self.file


class SourceLine(Record, frozen=True):
    """The line of Python on which a case was made: the origin of all of its parts."""

    file: str
    line: int

    def __call__(self, steps: Sequence[str | int] = (), /) -> Origin:
        return Origin(self.file, self.line, 1)


class EvalCase(Record, frozen=True, eq=False):
    """One input with its expectations, whatever file it came from.

    `evaluators` is the effective list: it includes those of the inline `rubrics` and `expect`,
    and the default ones if the author named none; then `has_default_evaluators` is true. If the
    author's list leaves expectations unread, the last `added_defaults` are defaults for these.
    `eval_file` is the suite that names the file of the case; empty when the case is in the suite.
    """

    id: str
    input_messages: tuple[Message, ...]
    evaluators: tuple[EvaluatorSpec, ...]
    description: str = ""
    expected_outcome: str | None = None
    expected_messages: tuple[Message, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    tier: Tier = "suite"
    conversation_id: str | None = None
    target: str | None = None
    threshold: float | None = None
    repeat: int | None = None
    min_pass_rate: float | None = None
    timeout_seconds: float | None = None
    skip: str | None = None
    cluster: str | None = None
    critical: bool = False
    has_default_evaluators: bool = False
    added_defaults: int = 0
    difficulty: str | None = None
    created_at: str | None = None
    bug_ref: str | None = None
    reference_data: Mapping[str, Any] | None = None
    stubs: Mapping[str, Any] = {}
    max_turns: int | None = None
    eval_file: str = ""
    locate: Callable[[Sequence[str | int]], Origin] | None = None

    def __eq__(self, other: object) -> bool:
        """Where a case was written does not matter."""
        if type(other) is not type(self):
            return NotImplemented
        place: dict[str, Any] = {"locate": None, "eval_file": ""}
        return asdict(self) | place == asdict(other) | place

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, origin={str(self.origin)!r})"

    def replace(self, **changes: Any) -> Self:
        """A copy with other values."""
        return replace(self, **changes)

    @property
    def origin(self) -> Origin:
        """Where the case was written."""
        return self.origin_of(())

    @property
    def folder(self) -> str:
        """The folder of its eval file; the working directory when it has none."""
        return os.path.abspath(os.path.dirname(self.eval_file or self.origin.file))

    def origin_of(self, path: str | Sequence[str | int]) -> Origin:
        """Where a part of the case was written: `"evaluators.0.mode"` or `["evaluators", 0]`.

        A part that is not in the file has the position of the nearest enclosing one that is.
        """
        if self.locate is None:
            return Origin("", 0, 0)
        steps = path.split(".") if isinstance(path, str) else path
        return self.locate(steps)

    def walk_evaluators(self) -> Iterator[tuple[tuple[str | int, ...], EvaluatorSpec]]:
        """Every evaluator with its path, including the members of composites."""
        pending: list[tuple[tuple[str | int, ...], EvaluatorSpec]] = [
            (("evaluators", index), spec) for index, spec in enumerate(self.evaluators)
        ]
        while pending:
            path, spec = pending.pop(0)
            yield path, spec
            members = enumerate(spec.members)
            pending[:0] = [((*path, "evaluators", index), member) for index, member in members]

    @property
    def question(self) -> str:
        """What the agent is asked: the text of all user messages."""
        return "\n".join(m.text for m in self.input_messages if m.role == "user")

    @property
    def expected_output(self) -> Any:
        """The content of the last expected assistant message that has one."""
        return self.expected.output

    @property
    def expected_tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(self.expected.calls)

    @property
    def expected(self) -> Expected:
        """What it expects, apart from its evaluators."""
        return Expected(self.expected_outcome, self.expected_messages)


class EvalSuite(Record, frozen=True):
    """A named list of cases, usually one file.

    `cases` can be iterated repeatedly and has a length; for a very large JSONL file it reads the
    file each time instead of keeping it in memory. A `streamed` suite has not been read yet: its
    cases are validated while they are read, and their number is unknown.
    """

    name: str
    cases: Sequence[EvalCase]
    file: str = ""
    tier: Tier = "suite"
    description: str = ""
    tool_name: str = ""
    target: str | None = None
    workers: int | None = None
    metadata: Mapping[str, Any] = {}
    warnings: tuple[Problem, ...] = ()
    streamed: bool = False

    def __iter__(self) -> Iterator[EvalCase]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)
