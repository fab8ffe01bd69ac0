"""Messages, calls and observations as Python code uses them."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

import assay
from assay import (
    Comparison,
    Context,
    EvalCase,
    EvalCaseResult,
    EvaluationScore,
    Message,
    Origin,
    Problem,
    Suite,
    ToolCall,
)
from assay.model.message import ContentPart
from assay.model.observation import Observation, Usage
from unit.evaluator_calls import spec_of


class Holder(pydantic.BaseModel):
    """A user's own model with a record of ours in it."""

    message: Message


CALLED = Message("assistant", tool_calls=(ToolCall("look", {"n": 1}),))


def test_a_model_takes_a_record_or_its_mapping() -> None:
    assert Holder(message=CALLED).message is CALLED
    read = Holder.model_validate({"message": {"role": "user", "content": "hi"}})
    assert read.message == Message("user", "hi")
    calls = [{"tool": "look", "input": {"n": 1}}]
    written = '{"message":{"role":"assistant","tool_calls":[{"tool":"look","input":{"n":1}}]}}'
    assert Holder(message=CALLED).model_dump_json() == written
    mixed = {"role": "assistant", "tool_calls": [ToolCall("look", {"n": 1})]}
    assert Holder.model_validate({"message": mixed}).message == CALLED
    assert Holder.model_validate({"message": mixed | {"tool_calls": calls}}).message == CALLED


def test_a_model_refuses_a_key_that_a_record_does_not_have() -> None:
    with pytest.raises(pydantic.ValidationError):
        Holder.model_validate({"message": {"role": "user", "contents": "hi"}})


def test_comparison_of_observations_ignores_raw() -> None:
    one = Observation("yes", usage=Usage(1, 2), raw={"a": 1})
    assert one.raw == {"a": 1}
    assert one == one.replace(raw=None)
    assert hash(one) == hash(one.replace(raw=None))
    assert one != one.replace(response="no")
    assert "raw" not in repr(one)


def test_records_can_be_copied_and_sent() -> None:
    for record in (CALLED, Observation("yes", messages=(CALLED,), raw=[1])):
        assert pickle.loads(pickle.dumps(record)) == record
        assert copy.deepcopy(record) == record
    with pytest.raises(AttributeError):
        CALLED.role = "user"  # type: ignore[misc]


def test_parts_are_equal_wherever_their_file_is() -> None:
    here, there = (ContentPart("file", "a.txt", Path(folder)) for folder in ("/here", "/there"))
    assert here == there
    assert hash(here) == hash(there)
    assert repr(here) == "ContentPart(type='file', value='a.txt')"
    assert here != ContentPart("text", "a.txt")
    assert EvalCase("a", (Message("user", (here,)),), ()) == EvalCase(
        "a", (Message("user", (there,)),), ()
    )


class OwnCase(EvalCase, frozen=True, eq=False):
    """A subclass of a plugin with a field after `locate`."""

    owner: str = ""


class OwnObservation(Observation, frozen=True, eq=False):
    """The same behind `raw`."""

    model: str = ""


def test_records_of_one_class_with_the_same_values_are_equal() -> None:
    case = OwnCase("a", (), (), owner="me", locate=lambda steps: Origin("a", 1, 1))
    assert case == OwnCase("a", (), (), owner="me")
    assert case != OwnCase("a", (), (), owner="you")
    assert case != EvalCase("a", (), ())
    assert repr(case) == "OwnCase(id='a', origin='a:1:1')"
    seen = OwnObservation("yes", model="one", raw=1)
    assert seen == OwnObservation("yes", model="one", raw=2)
    assert hash(seen) == hash(OwnObservation("yes", model="one"))
    assert seen != OwnObservation("yes", model="other", raw=1)
    assert seen != Observation("yes")
    assert repr(seen).startswith("OwnObservation(response='yes', ")
    assert repr(seen).endswith(", model='one')")


def records() -> dict[str, type[msgspec.Struct]]:
    """The public records of data, by name; those of ports hold functions and open resources."""
    public = {name: getattr(assay, name) for name in assay.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ != "assay.ports"
    }


@pytest.mark.parametrize("name", records())
def test_every_public_record_can_be_a_field_of_a_model(name: str) -> None:
    kind: Any = records()[name]
    model: Any = pydantic.create_model("Own", record=(kind, ...))
    with pytest.raises(pydantic.ValidationError):
        model(record=object())
    assert model.model_json_schema()["properties"]["record"]


SEEN = Observation("yes", (ToolCall("look"),), usage=Usage(1, 2))
CASE = EvalCase(
    "a", (CALLED,), (spec_of("contains", value="yes"),), locate=lambda s: Origin("", 0, 0)
)


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (Problem("a.yaml", 1, 2, "error", "no-cases", "none"), {"file": "a.yaml", "line": 1}),
        (Comparison("a", "b", "unchanged", 1, "passed"), {"base": "a", "exitCode": 0}),
        (SEEN, {"response": "yes", "usage": {"inputTokens": 1, "outputTokens": 2}}),
        (EvaluationScore(1.0), {"score": 1.0, "verdict": "pass"}),
        (EvalCaseResult(CASE, "passed", 1.0, "pass", (), SEEN), {"id": "a", "passed": True}),
        (CASE, {"id": "a", "locate": None}),
        (Suite("s", (CASE,)), {"name": "s", "file": ""}),
        (Context(CASE, SEEN), {"repeat": 0}),
    ],
)
def test_a_model_takes_a_record_unchanged_and_writes_it(record: Any, written: Any) -> None:
    model: Any = pydantic.create_model("Own", record=(type(record), ...))
    own: Any = model(record=record)
    assert own.record is record
    assert own.model_dump()["record"].items() >= written.items()
    read = json.loads(own.model_dump_json())["record"]
    assert read.items() >= written.items()


def test_a_case_in_a_model_has_its_evaluators() -> None:
    model: Any = pydantic.create_model("Own", case=(EvalCase, ...))
    (spec,) = json.loads(model(case=CASE).model_dump_json())["case"]["evaluators"]
    assert (spec["type"], spec["value"]) == ("contains", "yes")
