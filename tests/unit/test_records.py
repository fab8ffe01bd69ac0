"""Messages, calls and observations as Python code uses them."""

from __future__ import annotations

import copy
import pickle

import pydantic
import pytest

from assay import Message, ToolCall
from assay.model.observation import Observation, Usage


class Holder(pydantic.BaseModel):
    """A user's own model with a record of ours in it."""

    message: Message


CALLED = Message("assistant", tool_calls=(ToolCall("look", {"n": 1}),))


def test_a_model_takes_a_record_or_its_mapping() -> None:
    assert Holder(message=CALLED).message is CALLED
    read = Holder.model_validate({"message": {"role": "user", "content": "hi"}})
    assert read.message == Message("user", "hi")
    calls = [{"tool": "look", "input": {"n": 1}}]
    told = '{"message":{"role":"assistant","tool_calls":[{"tool":"look","input":{"n":1}}]}}'
    assert Holder(message=CALLED).model_dump_json() == told
    mixed = {"role": "assistant", "tool_calls": [ToolCall("look", {"n": 1})]}
    assert Holder.model_validate({"message": mixed}).message == CALLED
    assert Holder.model_validate({"message": mixed | {"tool_calls": calls}}).message == CALLED


def test_a_model_refuses_a_key_that_a_record_does_not_have() -> None:
    with pytest.raises(pydantic.ValidationError):
        Holder.model_validate({"message": {"role": "user", "contents": "hi"}})


def test_observations_are_equal_whatever_they_were_read_from() -> None:
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
