"""Valid eval files that use every key, to be loaded, described and broken."""

from __future__ import annotations

from typing import Any

SUITE: dict[str, Any] = {
    "description": "A suite with every key",
    "dataset": "everything",
    "x-own": [1],
    "execution": {
        "target": "agent",
        "threshold": 0.5,
        "repeat": 2,
        "timeout_seconds": 9.5,
        "workers": 3,
        "evaluators": [{"type": "contains", "value": "x"}],
    },
    "cases": [
        {"id": "text", "input": "What is 2+2?", "expected_output": "4"},
        {
            "id": "messages",
            "input_messages": [
                {"role": "system", "content": "You are kind"},
                {"role": "user", "name": "me", "content": [{"type": "text", "value": "Hi"}, "ho"]},
            ],
            "expected_messages": [
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"tool": "t", "input": {"q": 1}, "output": "o", "id": "1", "duration_ms": 5}
                    ],
                },
                {"role": "tool", "content": {"found": True}},
                {"role": "assistant", "content": {"status": "done"}},
            ],
        },
        {
            "id": "judged",
            "description": "d",
            "input": "x",
            "outcome": "y",
            "expected_outcome": "z",
            "rubrics": [
                "Is polite",
                {"id": "r", "outcome": "o", "weight": 2, "required_min_score": 1},
                {
                    "description": "graded",
                    "score_ranges": [
                        {"score_range": [0, 1], "outcome": "bad"},
                        {"score_range": [2, 3], "expected_outcome": "good"},
                    ],
                },
                {"dimension": "accuracy", "maxScore": 3, "criteria": "c"},
            ],
            "tags": ["a", "b"],
            "metadata": {"deep": [{"er": None}]},
            "threshold": 1,
            "repeat": 3.0,
            "min_pass_rate": 0.5,
            "skip": "not yet",
            "cluster": "c",
            "critical": True,
            "conversation_id": "t",
            "note": "old",
        },
        {
            "id": "evaluators",
            "input": "x",
            "expected_output": {"a": 1},
            "evaluators": [
                {"type": "equals"},
                {"type": "not-contains", "value": "x", "weight": 0, "required": 0.5},
                {"type": "contains_any", "values": ["x", "y"]},
                {"type": "contains-all", "value": "x"},
                {"type": "regex", "value": "a+(?=b)"},
                {"type": "is_json", "negate": True},
                {"type": "json_schema", "value": {"type": "object"}},
                {"type": "similarity", "value": "x", "name": "near"},
                {
                    "type": "tool_trajectory",
                    "mode": "any_order",
                    "minimums": {"t": 1},
                    "maximums": {"t": 2},
                    "expected": [
                        {"tool": "t", "args": {"n": {"gte": 1}}, "args_match": ["n"]},
                        {"any_of": [{"tool": "u"}, {"tool": "v", "input": "any"}]},
                        {"tool": "w", "optional": True, "max_duration_ms": 5, "output": "x"},
                    ],
                    "ignore": ["log"],
                    "forbidden": ["rm"],
                },
                {"type": "rubric", "rubrics": ["Is kind"], "model": "m", "target": "j"},
                {"type": "llm_judge", "prompt": "Judge {{question}}", "samples": 3},
                {"type": "code_judge", "script": ["sh", "x"], "env": ["A"], "own": 1},
                {
                    "type": "composite",
                    "aggregator": {"type": "weighted_average", "weights": {"in": 2}},
                    "evaluators": [{"type": "icontains", "value": "x", "name": "in"}],
                },
                {
                    "type": "field_accuracy",
                    "fields": [
                        {"path": "a[0].b", "match": "numeric_tolerance", "tolerance": 1},
                        {"path": "d", "match": "date", "formats": ["%Y"], "required": False},
                    ],
                },
                {"type": "latency", "threshold": 100},
                {"type": "cost", "budget": 0.1},
                {"type": "token_usage", "max_total": 5},
                {"type": "execution_metrics", "max_tool_calls": 1, "max_cost_usd": 1},
                {"type": "python:pkg.module:function", "own": [1]},
                {"type": "expect", "responseContains": ["x"]},
            ],
        },
        {
            "id": "expect",
            "input": "x",
            "execution": {"target": "other", "evaluators": [{"type": "is_json"}]},
            "expect": {
                "tools_called": ["t"],
                "toolsCalledMode": "sequence",
                "toolsNotCalled": ["u"],
                "toolParams": [
                    {"tool": "t", "paramName": "a.b", "assertion": "oneOf", "value": [1, "x"]},
                    {"tool": "t", "paramName": "a", "assertion": "exists", "call": 2},
                    {"tool": "t", "paramName": "a", "assertion": "matches", "value": "^x$"},
                ],
                "noToolErrors": True,
                "response_non_empty": True,
                "responseContains": ["{{seed:a.b[0]}} of"],
                "responseContainsAny": [["x", "{{snapshot:y}}"]],
                "responseNotContains": ["z"],
                "responseMatches": ["(a)(?=b)\\1$"],
                "maxLatencyMs": 5,
                "maxTokens": 5,
                "maxCostUsd": 0.1,
                "minToolCalls": 0,
                "maxToolCalls": 5,
                "jsonValid": True,
                "jsonSchema": {"type": "object"},
                "minLength": 1,
                "maxLength": 10,
            },
        },
    ],
}
EXPECT: dict[str, Any] = {
    **SUITE["cases"][4]["expect"],
    "toolsCalled": ["t"],
    "responseNonEmpty": True,
    "responseContains": ["x", "{{seed:a}}"],
    "responseContainsAny": [["x", "y"]],
}
del EXPECT["tools_called"], EXPECT["response_non_empty"]
COMMON: dict[str, Any] = {
    "description": "d",
    "input": {"message": "m"},
    "tags": ["x"],
    "metadata": {"x": {"y": [1]}},
    "critical": False,
    "cluster": "c",
    "stubs": {"t": {"ok": True}},
    "maxTurns": 3,
    "expect": EXPECT,
}
METADATA: dict[str, Any] = {
    "toolName": "t",
    "toolVersion": "1",
    "descriptionHash": "abc",
    "registrySize": 4,
    "generatedAt": "2026-01-15",
    "kept": [1],
}
TIERS: dict[str, Any] = {
    "golden": {"metadata": METADATA, "cases": [{**COMMON, "id": "gs-t-001"}]},
    "labeled": [
        {**COMMON, "id": "ls-t-001", "difficulty": "edge"},
        {
            **COMMON,
            "id": "ls-t-002",
            "difficulty": "ambiguous",
            "expect": {"toolsAcceptable": [["__none__"], ["t"], []]},
        },
    ],
    "regression": {
        "metadata": {**METADATA, "tier": "regression"},
        "cases": [
            {
                **COMMON,
                "id": f"rg-t-00{number}",
                "difficulty": "regression",
                "createdAt": "2026-01-15T10:30:00Z",
                "bugRef": "#1",
                "description": "regression — x",
            }
            for number in (1, 2)
        ],
    },
    "rubric": [
        {
            **{key: value for key, value in COMMON.items() if key != "expect"},
            "id": "rb-1",
            "referenceData": {"a": 1},
            "rubric": [{"dimension": "d", "maxScore": 1, "criteria": "c"}],
        }
    ],
}
