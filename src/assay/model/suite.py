"""The wire shapes of YAML suites and JSONL lines."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import SkipValidation, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.model.evaluator import Evaluators
from assay.model.expect import Expect
from assay.model.fields import (
    CaseId,
    Empty,
    Flag,
    Json,
    Positive,
    Rate,
    Several,
    SkipReason,
    Text,
    Words,
)
from assay.model.message import ExpectedMessages, InputMessages
from assay.model.rubric import Rubrics
from assay.model.shape import Shape
from assay.model.spelling import Key


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
    expected_outcome: Words | None = Key(None, aliases=("outcome", "criteria"))
    input_messages: InputMessages = Key((), aliases=("input",), mistaken=_INPUT)
    expected_messages: ExpectedMessages | None = Key(
        None, aliases=("expected_output",), mistaken=_EXPECTED
    )
    rubrics: Rubrics | None = None
    evaluators: Evaluators | None = Key(None, aliases=("assert", "assertions"))
    expect: Expect | None = None
    conversation_id: Text | None = None
    execution: CaseExecution | None = None
    tags: list[Text] = Key(default_factory=list, mistaken=("tag", "label", "labels"))
    metadata: dict[str, Json] = Empty(dict)
    threshold: Rate | None = None
    repeat: Several | None = None
    min_pass_rate: Rate | None = None
    skip: SkipReason | None = None
    cluster: Text | None = None
    critical: Flag = False
    evaluator: Any = Key(None, legacy=True)
    note: Any = Key(None, legacy=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        needed = [cls.given("input_messages"), cls.given("skip")]
        handler.resolve_ref_schema(schema)["anyOf"] = needed
        return schema


class SuiteFile(Shape):
    """The root mapping of a YAML suite, and a JSONL file's sidecar without `cases`."""

    description: str = ""
    dataset: Text | None = None
    execution: SuiteExecution | None = None
    cases: Annotated[
        list[SkipValidation[CaseFile]],
        WithJsonSchema({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ListedCase"}}),
    ] = Key(default_factory=list, aliases=("evalcases", "eval_cases", "tests"))


class OneCaseFile(CaseFile):
    """A root mapping that is itself a case, and so has the suite's keys too."""

    dataset: Text | None = None
    execution: SuiteExecution | None = None


#: Every spelling of the keys that make a mapping a suite, or a case; the canonical one first.
CASES_KEYS = ("cases", *SuiteFile.spelling.names("cases"))
INPUT_KEYS = ("input_messages", *CaseFile.spelling.names("input_messages"))
