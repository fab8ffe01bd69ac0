"""The wire shapes of YAML suites and JSONL lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError

from assay.model.evaluator import Evaluators
from assay.model.expect import Expect
from assay.model.message import ExpectedMessages, InputMessages
from assay.model.parameters import Rows
from assay.model.rubric import Rubrics
from assay.model.stubs import Stubs
from assay.wire.fields import (
    AtLeastOne,
    CaseId,
    Empty,
    Flag,
    Json,
    NonBlankText,
    Positive,
    Rate,
    Several,
    SkipReason,
    Text,
)
from assay.wire.key_names import Key
from assay.wire.shape import Shape
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import problem, shown


class CaseExecution(Shape):
    """How one case runs."""

    target: Text | None = None
    evaluators: Evaluators | None = Key(None, aliases=("assert", "assertions"))
    threshold: Rate | None = None
    repeat: Several | None = None
    timeout_seconds: Positive | None = None


class SuiteExecution(CaseExecution):
    """How a suite runs, and what its cases inherit."""

    workers: Several | None = None


#: What other tools call the input and the expected output of a case.
_INPUT = ("question", "query", "prompt", "user_input", "user_message", "message")
_EXPECTED = (
    *("answer", "expected", "expected_answer", "expected_response", "ideal", "output"),
    *("reference", "reference_answer", "ground_truth", "golden_answer"),
)


class CaseFile(Shape):
    """One case as written in a YAML suite or on a JSONL line."""

    id: CaseId | None = Key(None, mistaken=("name", "case_id", "test_id"))
    description: str = ""
    expected_outcome: NonBlankText | None = Key(None, aliases=("outcome", "criteria"))
    input_messages: InputMessages = Key((), aliases=("input",), mistaken=_INPUT)
    expected_messages: ExpectedMessages | None = Key(
        None, aliases=("expected_output",), mistaken=_EXPECTED
    )
    rubrics: Rubrics | None = None
    evaluators: Evaluators | None = Key(None, aliases=("assert", "assertions"))
    expect: Expect | None = None
    conversation_id: Text | None = None
    execution: CaseExecution | None = None
    vars: Rows = None
    vars_from: Text | None = None
    tags: list[Text] = Key(default_factory=list, mistaken=("tag", "label", "labels"))
    metadata: dict[str, Json] = Empty(dict)
    threshold: Rate | None = None
    repeat: Several | None = None
    min_pass_rate: Rate | None = None
    skip: SkipReason | None = None
    cluster: Text | None = None
    critical: Flag = False
    stubs: Stubs = Empty(dict)
    max_turns: AtLeastOne | None = Key(None, aliases=("maxTurns",))
    evaluator: Any = Key(None, legacy=True)
    note: Any = Key(None, legacy=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        needed = [cls.given("input_messages"), cls.given("skip")]
        handler.resolve_ref_schema(schema)["anyOf"] = needed
        return schema


def _version(raw: Any) -> Any:
    """A version is for readers only; authors write it with and without quotes."""
    if raw is None or (isinstance(raw, (str, int, float)) and not isinstance(raw, bool)):
        return raw
    raise problem("wrong-type", f"is {shown(raw)}, neither text nor a number")


#: The suffixes of a file of cases that a suite names.
_CASE_FILES = (".jsonl", ".yaml", ".yml", ".csv")


def named_cases(value: str, find_file: Callable[[str], Path]) -> Path:
    """The file of cases that a suite names; raises a validation error."""
    file = find_file(value.removeprefix("file://"))
    if file.suffix not in _CASE_FILES:
        hint = f"the name must end with one of {', '.join(_CASE_FILES)}"
        raise problem("unknown-format", f"{value!r} is not a file of cases", hint)
    return file


def _list_or_file(raw: Any, info: ValidationInfo) -> Any:
    """A list, whose items the loader validates, or the file that a text names."""
    context: ValidationContext | None = info.context
    if isinstance(raw, str) and context is not None:
        return named_cases(raw, context.find_file)
    if not isinstance(raw, list):
        raise PydanticKnownError("list_type")
    return raw


class SuiteFile(Shape):
    """The root mapping of a YAML suite, and a JSONL file's sidecar without `cases`."""

    description: str = ""
    dataset: Text | None = Key(None, aliases=("name",))
    version: Annotated[
        str | float | None, BeforeValidator(_version, json_schema_input_type=str | float | None)
    ] = None
    tags: list[Text] = Empty(list)
    vars: Rows = None
    vars_from: Text | None = None
    target: Text | None = None
    evaluators: Evaluators | None = Key(None, aliases=("assert", "assertions"))
    evaluator: Any = Key(None, legacy=True)
    stubs: Stubs = Empty(dict)
    execution: SuiteExecution | None = None
    cases: Annotated[
        list[CaseFile] | Path,
        PlainValidator(_list_or_file),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ListedCase"}},
                    {"type": "string", "pattern": r"\.(jsonl|ya?ml|csv)$"},
                ]
            }
        ),
    ] = Key(default_factory=list, aliases=("evalcases", "eval_cases", "tests"))

    @property
    def inherited(self) -> SuiteExecution:
        """What the cases inherit: `execution`, then the `target` and `evaluators` of the root."""
        execution = self.execution or SuiteExecution()
        root = {"target": self.target, "evaluators": self.evaluators}
        unset = {key: value for key, value in root.items() if getattr(execution, key) is None}
        return execution.model_copy(update=unset)


class OneCaseFile(CaseFile):
    """A root mapping that is itself a case, and so has the suite's keys too."""

    dataset: Text | None = None
    execution: SuiteExecution | None = None


#: Every spelling of the keys that make a mapping a suite, or a case; the canonical one first.
CASES_KEYS = ("cases", *SuiteFile.key_names.names("cases"))
INPUT_KEYS = ("input_messages", *CaseFile.key_names.names("input_messages"))
