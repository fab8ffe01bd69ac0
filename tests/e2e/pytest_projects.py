"""A project with eval files, an agent and pytest, which runs in the process of the test."""

from __future__ import annotations

import pkgutil
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import assay
from assay.model.run import RunRecord
from assay.service.project import find_settings
from assay.service.store import open_store

# Each run of pytest below forgets what it was the first to import: then there would be two of it.
for module in pkgutil.walk_packages(assay.__path__, "assay."):
    if not module.name.startswith(("assay.testing", "assay.__main__")):
        import_module(module.name)

CONFIG = """
targets:
  - name: mine
    provider: python
    callable: agent:answer
defaults: {target: mine, workers: 20}
"""
#: Writes down what it is asked. What it answers follows from the question.
AGENT = """
import threading

release = threading.Event()
gate = threading.Barrier(5)

def answer(question):
    with open("asked.txt", "a") as file:
        file.write(question + "\\n")
    if question == "break":
        raise RuntimeError("the agent broke")
    if question == "wait":
        release.wait(60)
    if question == "together":
        gate.wait(60)
    if question == "sometimes":
        with open("asked.txt") as file:
            return "yes" if file.read().count("sometimes") % 2 else "no"
    return {"response": question, "toolCalls": [{"name": "find", "params": {"n": 1}}]}
"""
#: Warnings are no errors there, as they are here, and plugins that take long to load are left out.
APART = (
    *("-W", "default", "-p", "no:schemathesis", "-p", "no:hypothesispytest"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)


class Evals:
    """A project with eval files and an agent, and pytest in this process."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester, self.root = pytester, pytester.path
        self.write("assay.yaml", CONFIG)
        self.write("agent.py", AGENT)
        sys.modules.pop("agent", None)  # another test's; pytester brings it back

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def cases(self, *cases: str, name: str = "evals/a.eval.yaml") -> None:
        """A suite of cases, each `id: question`; it passes if the question is `fine`."""
        lines = ["cases:"]
        for case in cases:
            case_id, question = case.split(": ")
            lines.append(f"  - {{id: {case_id}, input: {question}, expected_output: fine}}")
        self.write(name, "\n".join(lines))

    def pytest(self, *arguments: str) -> pytest.RunResult:
        """The run of pytest with `--assay`, and without what it was asked before."""
        (self.root / "asked.txt").unlink(missing_ok=True)
        return self._pytester.runpytest_inprocess(*APART, "--assay", *arguments)

    @property
    def asked(self) -> Counter[str]:
        """How often the agent was asked each question in the last run."""
        file = self.root / "asked.txt"
        return Counter(file.read_text("utf-8").splitlines() if file.exists() else ())

    @property
    def runs(self) -> list[RunRecord]:
        """The recorded runs, newest first."""
        store = open_store(find_settings())
        try:
            return store.runs(100)
        finally:
            store.close()

    def baseline(self, name: str = "main") -> None:
        """Make the newest run the baseline."""
        store = open_store(find_settings())
        try:
            store.set_baseline(name, store.runs(1)[0].id)
        finally:
            store.close()
