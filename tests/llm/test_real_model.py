"""A real model as agent and as judge, over HTTP. It judges by chance: this tests the plumbing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay
from assay.ports import Request
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool
from timeouts import WAIT_SECONDS

pytestmark = pytest.mark.full

SUITE = """\
cases:
  - id: capital
    input: What is the capital of France? Answer in one word.
    expected_outcome: It names Paris
  - id: sum
    input: What is 2 + 2?
    rubrics:
      - It says 4
      - {id: brief, description: The answer is short, required: false}
  - id: greeting
    input: Say hello.
    evaluators:
      - {type: llm_judge, samples: 2}
      - {type: contains, value: ello, weight: 0}
    expected_outcome: It is a greeting
"""

CONFIG = """\
targets:
  - {{name: small, provider: openai, model: smollm2, base_url: {address}/v1, max_tokens: 120,
      temperature: 0, seed: 1}}
judge: small
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server in a process of its own; it ends when its stdin is closed."""
    serve = Path(__file__).parent / "serve.py"
    command = [sys.executable, str(serve)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        yield run.stdout.readline().strip()
        assert run.stdin is not None
        run.stdin.close()
        run.wait(timeout=WAIT_SECONDS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assay.yaml").write_text(CONFIG.format(address=address))
    (tmp_path / "chat.eval.yaml").write_text(SUITE)
    return tmp_path


def answers(project: Path, cases: list[assay.EvalCase]) -> list[assay.Observation]:
    async def ask() -> list[assay.Observation]:
        async with TargetPool(Settings.find(project)) as pool:
            target = pool.target("small")
            requests = [target.ask(Request(case.input_messages, case)) for case in cases]
            return list(await asyncio.gather(*requests))

    return asyncio.run(ask())


def test_it_answers_and_judges(project: Path) -> None:
    cases = list(assay.load("chat.eval.yaml")[0].cases)
    seen = answers(project, cases)
    for observation in seen:
        assert observation.response.strip()
        assert observation.usage is not None
        assert observation.usage.output_tokens
        assert observation.cost_usd is None  # nobody knows what it costs
    results = [assay.evaluate(case, one) for case, one in zip(cases, seen, strict=True)]
    for result in results:
        assert result.outcome in ("passed", "failed", "errored")
        if result.outcome == "errored":
            assert "the judge 'small' gave no usable reply in 3 attempts" in str(result.error)
        for evaluator in result.evaluators:
            if evaluator.type != "contains":
                judge = evaluator.score.details["judge"]
                assert judge["target"] == "small"
                assert judge["calls"] >= 1
                assert judge["usage"]["outputTokens"] > 0
    # The server holds the model to the reply's schema, so some replies can be read.
    assert any(result.outcome != "errored" for result in results)
