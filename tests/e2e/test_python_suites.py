"""Suites made in Python: what `run` takes, what it refuses, and what it calls them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay import EvalCase, Message, Suite
from assay.errors import UsageError
from assay.loaders import jsonl
from unit.evaluator_calls import spec_of

YES = (spec_of("contains", value="yes"),)
ASKED = (Message("user", "Is it?"),)


def case(identity: Any = "a", **fields: Any) -> EvalCase:
    return EvalCase(**{"id": identity, "input_messages": ASKED, "evaluators": YES} | fields)


def suite(*cases: Any, name: str = "made", file: str = "") -> Suite:
    return Suite(name, cases, file)


def agent(question: str) -> str:
    return "yes"


def refused(cases: Any, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        assay.run(cases, target=agent, **options)
    return str(caught.value)


TAKEN: dict[str, Callable[[], Any]] = {
    "one": lambda: suite(case()),
    "a list": lambda: [suite(case())],
    "a tuple": lambda: (suite(case()),),
    "a generator": lambda: (made for made in [suite(case())]),
    "a case": lambda: case(),
    "cases": lambda: [case()],
    "a list of cases in it": lambda: Suite("made", [case()]),
}


@pytest.mark.parametrize("what", TAKEN)
def test_one_suite_is_as_good_as_several(place: Any, what: str) -> None:
    assert assay.run(TAKEN[what](), target=agent).summary.passed == 1
    assert asyncio.run(assay.arun(TAKEN[what](), target=agent)).summary.passed == 1


def test_what_is_neither_suite_nor_path_is_refused(place: Any) -> None:
    wanted = "give a Suite, a list of cases, or paths of eval files"
    assert refused(3) == f"an int cannot be run: {wanted}"
    assert refused([suite(case()), case()]) == f"a list with an EvalCase cannot be run: {wanted}"
    assert refused([suite(case()), 3]) == f"a list with an int cannot be run: {wanted}"
    assert "`assay.load` makes suites of paths" in refused([suite(case()), "evals"])
    assert "no path is given" in refused([])
    verbs: list[Callable[[Any], Any]] = [assay.load, assay.validate, assay.lint]
    for verb in verbs:
        with pytest.raises(UsageError, match="int is not a path: name one eval file or folder"):
            verb(3)
        with pytest.raises(UsageError, match="EvalCase is not a path"):
            verb(suite(case()))


WRONG: dict[str, tuple[Suite, str]] = {
    "no evaluator": (suite(case(evaluators=())), "'a': it has no evaluators"),
    "no input": (suite(case(input_messages=())), "'a': it has no input_messages"),
    "same id": (suite(case(), case()), "'a': another case has this id"),
    "empty id": (suite(case("")), "'': the id is empty"),
    "space": (suite(case(" a")), "' a': the id is empty or has space around it"),
    "control character": (suite(case("a\x07")), "the id has characters that cannot be printed"),
    "id that is a number": (suite(case(1)), "1: the id is an int, not text"),
    "input that is a text": (
        suite(case(input_messages="Is it?")),
        "'a': input_messages is a str, not a tuple of Message: (Message('user', ",
    ),
    "input of mappings": (
        suite(case(input_messages=[{"role": "user"}])),
        "'a': input_messages[0] is a dict, not Message('user', ",
    ),
    "expectation that is a text": (
        suite(case(expected_messages="yes")),
        "'a': expected_messages is a str, not a tuple of Message",
    ),
    "a function": (
        suite(case(evaluators=(agent,))),
        "'a': evaluators[0] is a function, not an evaluator",
    ),
    "no case": (suite(), "the suite 'made' has no case"),
    "an iterator": (
        Suite("made", iter([case()])),  # type: ignore[arg-type]
        "the suite 'made': 'cases' is a list_iterator, not a list or a tuple of EvalCase",
    ),
    "a stranger": (suite(3), "the suite 'made': cases[0] is an int, not an EvalCase"),
    "no name": (suite(case(), name=""), "a suite is called '': a name is printable text"),
    "a name of two lines": (suite(case(), name="a\nb"), "a suite is called 'a\\nb'"),
    "a path": (
        Suite("made", [case()], Path("made")),  # type: ignore[arg-type]
        "'file' is a PosixPath, not text; '' when it is in no file",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_files_are_refused_for_is_refused(place: Any, what: str) -> None:
    made, words = WRONG[what]
    told = refused(made)
    assert told.startswith("these suites cannot be run:\n  ")
    assert words in told


def test_all_problems_are_told_at_once(place: Any) -> None:
    one = suite(case(evaluators=()), case("b", input_messages=()), name="one")
    told = refused([one, suite(name="two")])
    assert told.splitlines()[1:] == [
        "  the suite 'one', case 'a': it has no evaluators, and nothing could fail;"
        " or give a reason to skip it",
        "  the suite 'one', case 'b': it has no input_messages, and nothing could be asked;"
        " or give a reason to skip it",
        "  the suite 'two' has no case",
    ]
    many = refused(suite(*(case(str(i), evaluators=()) for i in range(1000))))
    assert len(many.splitlines()) == 102
    assert many.endswith("\n  and more")


def test_cases_that_are_skipped_or_judged_by_default_need_no_evaluator(place: Any) -> None:
    skipped = case(evaluators=(), input_messages=(), skip="later")
    assert assay.run(suite(case(), case("b").replace(skip="x")), target=agent).passed
    assert assay.run(suite(case(), skipped.replace(id="b")), target=agent).summary.skipped == 1
    usual = case(evaluators=(), has_default_evaluators=True)
    judged = assay.run(suite(usual), target=agent, evaluators=[{"type": "contains", "value": "y"}])
    assert judged.summary.passed == 1
    assert "no evaluators" in refused(suite(usual))


def test_cases_of_a_large_file_are_not_read_once_more(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "HELD_BYTES", 0)
    place.write("large.eval.jsonl", [{"id": "a", "input": "Is it?", "expected_output": "yes"}])
    (loaded,) = assay.load("large.eval.jsonl")
    assert not isinstance(loaded.cases, tuple)
    reads = []
    read = jsonl.CaseLines.__iter__

    def counted(lines: jsonl.CaseLines) -> Any:
        reads.append(1)
        return read(lines)

    monkeypatch.setattr(jsonl.CaseLines, "__iter__", counted)
    assay.run("large.eval.jsonl", target=agent)
    usual = len(reads)
    assay.run(loaded, target=agent)
    assert len(reads) == 2 * usual > 0


def test_result_files_are_called_after_suites_without_a_file(place: Any) -> None:
    names = ["made", "made", "../up/and\\away: 100 %", "...", "ä" * 300]
    run = assay.run([suite(case(), name=name) for name in names], target=agent)
    files = [file.name for file in sorted(Path(run.folder).iterdir(), key=lambda f: f.name)]
    long = "ä" * 100
    assert files == sorted(
        ["made.json", "made-2.json", "up-and-away-100.json", "suite.json", f"{long}.json"]
    )
    assert [found.file for found in run.suites[:2]] == ["suite:made", "suite:made-2"]
    first = json.loads((Path(run.folder) / "made.json").read_text())
    assert (first["suite"], first["file"]) == ("made", "suite:made")
    assert "suite:made" in assay.run(suite(case()), target=lambda q: "no").report()


def test_suites_without_a_file_are_compared_one_by_one(place: Any) -> None:
    suites = [suite(case(), name="one"), suite(case(), name="two")]
    before = assay.run(suites, target=agent)
    now = assay.run(suites, target=agent, baseline=before)
    assert now.comparison is not None
    assert now.comparison.pairs == 2
    assert assay.compare(before, now).decision == "unchanged"


def test_a_suite_of_loaded_cases_is_one_of_its_file(place: Any) -> None:
    (loaded,) = assay.load("evals")
    some = msgspec.structs.replace(loaded, cases=loaded.cases[:1])
    run = assay.run(some, target=lambda question: "It is 21.")
    assert run.suites[0].file == "evals/a.eval.yaml"
    assert assay.regrade(run.id).summary.total_cases == 1
    assert "another case has this id" in refused([loaded, some])
    mute = loaded.cases[0].replace(evaluators=())
    assert "it has no evaluators" in refused(suite(mute))


@pytest.mark.parametrize("file", ["", "made_up.eval.yaml", "agent.py"])
def test_regrading_wants_suites_of_python_again(place: Any, file: str) -> None:
    (place.root / "agent.py").write_text("")
    (loaded,) = assay.load("evals")
    made = suite(case(), loaded.cases[0], file=file)
    run = assay.run(made, target=lambda question: "It is 21, yes.")
    with pytest.raises(UsageError) as caught:
        assay.regrade(run.id)
    told = str(caught.value)
    assert told.startswith(f"suites of the run {run.id} were made in Python ('{file or 'made'}')")
    assert told.endswith(f"assay.regrade({run.id!r}, suites)")
    again = assay.regrade(run.id, made)
    assert again.summary.total_cases == 2
    assert assay.compare(run, again).decision == "unchanged"
    stricter = suite(case(evaluators=(spec_of("contains", value="no"),)), file=file)
    assert assay.regrade(run.id, stricter).summary.failed == 1


def test_the_command_cannot_ask_suites_of_python_again(place: Any) -> None:
    run = assay.run(suite(case()), target=lambda question: "no")
    done = place.assay("run", "--rerun-failed", run.id, code=2)
    assert "can only be given again there: assay.run(suites, ...)" in done.output
