"""Numbers in messages: rounded, with units, and never like the limit that they miss."""

from __future__ import annotations

import pytest

from assay.model.json_schema import answer_schema
from assay.model.numbers import amount, rounded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (671.865158, "671.9"),
        (12345.678, "12,346"),
        (0.051234567, "0.05123"),
        (0.0000123456, "0.00001235"),
        (1200, "1,200"),
        (3.0, "3"),
        (0, "0"),
        (-2.50, "-2.5"),
        (99.99999, "100"),
    ],
)
def test_rounded(value: float, text: str) -> None:
    assert rounded(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [(500.04, 500, "500.04"), (0.79999, 0.8, "0.79999"), (671.865, 500, "671.9"), (5, 5, "5")],
)
def test_number_never_looks_like_the_limit_that_it_misses(
    value: float, limit: float, text: str
) -> None:
    assert rounded(value, limit) == text


def test_units_have_a_plural_where_they_need_one() -> None:
    assert [amount(number, "call") for number in ("0", "1", "2")] == [
        "0 calls",
        "1 call",
        "2 calls",
    ]
    assert [amount("2", unit) for unit in ("ms", "USD")] == ["2 ms", "2 USD"]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, None, "null is not of type 'string'"),
        ({"type": "string"}, True, "true is not of type 'string'"),
        ({"type": "string"}, {"a": None}, "{\"a\": null} is not of type 'string'"),
        ({"enum": [None, True, "a"]}, 5, '5 is not one of [null, true, "a"]'),
        ({"const": None}, 5, "null was expected"),
        ({"properties": {"a": False}}, {"a": None}, "False schema does not allow null"),
        ({"type": "integer"}, "x" * 500, "...' is not of type 'integer'"),
    ],
)
def test_faults_of_a_schema_quote_json(
    schema: dict[str, object], value: object, message: str
) -> None:
    (fault,) = answer_schema(schema).faults(value)
    assert fault.endswith(message)
    assert len(fault) < 170
