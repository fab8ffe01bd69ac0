"""The OpenAPI schemas and examples of results, comparisons and points of a trend."""

from __future__ import annotations

from typing import Any, get_args

from assay.model.comparison import Comparison, Decision, GateVerdict, LossStatus, Reasks
from assay.model.options import Gate
from assay.results.schema import case_shapes
from assay.server.openapi_operation import COUNT, Schema, nullable, record, ref

RUN_ID = "0198c0de-1111-7000-8000-000000000001"
STARTED = "2026-01-15T10:30:00.000Z"
ANY: Schema = {"type": "object"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}

ESTIMATE = {"estimate": 0.5, "low": 0.09, "high": 0.91, "level": 0.95, "method": "wilson"}
RESULT: dict[str, Any] = {
    "suite": "evals/capitals.eval.yaml",
    "position": 0,
    "id": "france",
    "description": "",
    "passed": True,
    "durationMs": 812.5,
    "details": {
        "outcome": "passed",
        "score": 1.0,
        "verdict": "pass",
        "evaluators": [
            {
                "name": "equals",
                "type": "equals",
                "weight": 1.0,
                "score": 1.0,
                "verdict": "pass",
                "hits": ["equals the expected output"],
                "misses": [],
            }
        ],
        "failures": [],
        "trials": [{"repeat": 0, "outcome": "passed", "score": 1.0, "durationMs": 812.5}],
        "response": "Paris",
    },
}
_UNCHANGED = Comparison(
    base=RUN_ID,
    candidate=RUN_ID,
    verdict="passed",
    decision="unchanged",
    pairs=2,
    difference=ESTIMATE | {"estimate": 0.0, "low": -0.66, "high": 0.66, "method": "newcombe"},
    test={"name": "mcnemar-exact", "pValue": 1.0, "discordant": [0, 0]},
    worse={"name": "mcnemar-exact-worse", "pValue": 1.0, "significant": False},
    explanation="Nothing changed: 2 cases did the same in both runs.",
)
COMPARISON = _UNCHANGED.to_dict()
POINT: dict[str, Any] = {
    "runId": RUN_ID,
    "startedAt": STARTED,
    "target": "agent",
    "passed": 1,
    "judged": 2,
    "passRate": ESTIMATE,
}
_LISTS = dict.fromkeys(_UNCHANGED.lists, TEXTS)


def schemas() -> dict[str, Schema]:
    """All of them. A result is a case as in a result file, with its suite and position."""
    shapes = case_shapes(ref("{name}")["$ref"])
    case = shapes.pop("CaseResult")
    properties = {"suite": TEXT, "position": COUNT, **case["properties"]}
    required = ["suite", "position", *case["required"]]
    result = case | {"title": "Result", "properties": properties, "required": required}
    return {**shapes, "Result": result, **_SCHEMAS}


_TEST = record(
    {
        "name": TEXT,
        "pValue": NUMBER,
        "discordant": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
        "eValue": nullable(NUMBER),
    },
    "eValue",
)
_WORSE = record({"name": TEXT, "pValue": NUMBER, "significant": {"type": "boolean"}})
_LOSS = record(
    {
        "suite": TEXT,
        "id": TEXT,
        "status": {"type": "string", "enum": list(get_args(LossStatus))},
        "critical": {"type": "boolean"},
        "reasks": record(dict.fromkeys(Reasks._fields, COUNT)),
        "reason": TEXT,
    }
)
_ACCEPTED = record({"suite": TEXT, "id": TEXT, "reason": TEXT, "until": TEXT}, "until")
_SCORES = record(
    {
        "suite": TEXT,
        "pairs": COUNT,
        "difference": ref("Estimate"),
        "test": record({"value": NUMBER, "method": TEXT, "adjusted": NUMBER}),
    }
)
_SCHEMAS: dict[str, Schema] = {
    "Estimate": record(
        {
            "estimate": NUMBER,
            "low": nullable(NUMBER),
            "high": nullable(NUMBER),
            "level": NUMBER,
            "method": TEXT,
        }
    ),
    "Comparison": record(
        {
            "base": TEXT,
            "candidate": TEXT,
            "verdict": {"type": "string", "enum": list(get_args(GateVerdict))},
            "decision": {"type": "string", "enum": list(get_args(Decision))},
            "pairs": COUNT,
            "difference": nullable(ref("Estimate")),
            "test": nullable(_TEST),
            "worse": nullable(_WORSE),
            "scores": {"type": "array", "items": _SCORES},
            "losses": {"type": "array", "items": _LOSS},
            "accepted": {"type": "array", "items": _ACCEPTED},
            **_LISTS,
            "suites": {"type": "object", "additionalProperties": record(_LISTS, *_LISTS)},
            "gate": {"type": "string", "enum": list(get_args(Gate))},
            "gateFailures": TEXTS,
            "undecided": TEXTS,
            "explanation": TEXT,
            "warnings": TEXTS,
            "notes": TEXTS,
            "exitCode": {"type": "integer"},
        }
    ),
    "Point": record(
        {
            "runId": TEXT,
            "startedAt": TEXT,
            "target": TEXT,
            "passed": COUNT,
            "judged": COUNT,
            "passRate": ref("Estimate"),
        }
    ),
}
