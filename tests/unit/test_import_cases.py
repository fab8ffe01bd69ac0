"""Test cases between files and the store."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from assay.errors import EvalFileErrors, UsageError
from assay.model.test_case import NewTestCase, TestCase
from assay.service import test_cases
from assay.service.test_cases import export_test_cases, import_test_cases
from assay.stores.memory import MemoryStore
from assay.suites.drafts import FIELDS
from unit.conftest import Project, invoke

ID = "550e8400-e29b-41d4-a716-446655440001"


class Kept(MemoryStore):
    """A store that stays when a verb has closed it."""

    def close(self) -> None:
        pass


@pytest.fixture
def store(project: Project, monkeypatch: pytest.MonkeyPatch) -> Kept:
    store = Kept()
    monkeypatch.setattr(test_cases, "open_store", lambda settings, url: store)
    monkeypatch.setattr(test_cases, "project_store", lambda url: closing(store))
    return store


def cases(store: MemoryStore) -> list[TestCase]:
    return store.test_cases.page(1000).test_cases


def pairs(store: MemoryStore) -> list[tuple[str, str]]:
    return [(case.input, case.expected_output) for case in cases(store)]


def test_a_suite_is_imported_and_imported_again(project: Project, store: Kept) -> None:
    file = project.write(
        "geo.eval.yaml",
        """
        description: a suite with more than test cases have
        cases:
          - id: france
            input: capital of France?
            expected_output: Paris
            description: Basic
            tags: [geo]
          - id: data
            input_messages: [{role: user, content: some JSON?}]
            expected_output: {a: 1}
        """,
    )
    done = import_test_cases(file, tags=["mine"])
    assert (done.added, done.changed, done.unchanged) == (2, 0, 0)
    assert pairs(store) == [("capital of France?", "Paris"), ("some JSON?", '{"a": 1}')]
    first = cases(store)[0]
    assert (first.description, first.tags) == ("Basic", ("geo", "mine"))
    UUID(first.id)
    project.write("geo.eval.yaml", file.read_text().replace("Paris", "Lyon"))
    again = import_test_cases(file, tags=["mine"])
    assert (again.added, again.changed, again.unchanged) == (0, 1, 1)
    assert (cases(store)[0].id, cases(store)[0].version) == (first.id, 2)


def test_evaluators_that_are_left_out_are_counted(project: Project, store: Kept) -> None:
    judged = "{id: a, input: b, expected_output: c, evaluators: [{type: contains, value: d}]}"
    project.write("a.eval.yaml", f"cases: [{judged}, {{id: b, input: b, expected_output: c}}]")
    told = invoke("import", "a.eval.yaml")
    assert told.stderr == "1 evaluator left out: a test case has only the text that is expected\n"


def test_files_of_the_same_name_do_not_overwrite_each_other(
    project: Project, store: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("assay.yaml", "targets: []")
    for folder in ("a", "b"):
        sample = {"input": f"say {folder}", "ideal": folder}
        assert import_test_cases(project.write(f"{folder}/s.jsonl", json.dumps(sample))).added == 1
    assert pairs(store) == [("say a", "a"), ("say b", "b")]
    monkeypatch.chdir("a")  # the same file from another place is the same
    assert import_test_cases(["s.jsonl", "../b/s.jsonl"]).unchanged == 2


def test_an_agentv_file_is_imported(project: Project, store: Kept) -> None:
    file = project.write(
        "old.yaml",
        """
        evalcases:
          - id: greet
            outcome: greets
            input_messages:
              - {role: user, content: hello}
            expected_messages:
              - {role: assistant, content: hi}
        """,
    )
    import_test_cases(file)
    assert pairs(store) == [("hello", "hi")]


def test_a_csv_without_ids_is_imported(project: Project, store: Kept) -> None:
    file = project.write("some.csv", 'input,expected_output,tags\n" a ","x, y","p;q"\n')
    import_test_cases(file)
    assert pairs(store) == [(" a ", "x, y")]
    assert cases(store)[0].tags == ("p", "q")


def test_openai_samples_are_imported(project: Project, store: Kept) -> None:
    lines: list[dict[str, Any]] = [
        {"input": [{"role": "system", "content": "Add."}, {"role": "user", "content": "2+2"}]},
        {"input": "plain"},
    ]
    ideals: list[Any] = ["4", ["yes", "Yes."]]
    samples = [line | {"ideal": ideal} for line, ideal in zip(lines, ideals, strict=True)]
    file = project.write("samples.jsonl", "".join(json.dumps(s) + "\n" for s in samples))
    import_test_cases(file)
    assert pairs(store) == [("Add.\n\n2+2", "4"), ("plain", "yes")]


def test_openai_samples_with_an_assistant_are_refused(project: Project, store: Kept) -> None:
    sample = {"input": [{"role": "assistant", "content": "x"}], "ideal": "y"}
    file = project.write("samples.jsonl", "\n\n" + json.dumps(sample))
    assert refused(file) == [("samples.jsonl:2:1", "wrong-type")]
    assert cases(store) == []


def test_a_sample_that_says_something_twice_is_refused(project: Project, store: Kept) -> None:
    file = project.write("samples.jsonl", '{"input": "x", "input": "y", "ideal": "z"}')
    assert refused(file) == [("samples.jsonl:1:16", "duplicate-key")]


def refused(*files: Path) -> list[tuple[str, str]]:
    with pytest.raises(EvalFileErrors) as refusal:
        import_test_cases(files)
    return [(problem.place, problem.code) for problem in refusal.value.problems]


PROMPTFOO = """
prompts:
  - "Translate to {{language}}: {{ text }}"
  - {raw: "In {{language}}, {{text}} is", label: short}
providers: [openai:gpt-4]
defaultTest: {vars: {language: French}}
tests:
  - description: greeting
    vars: {text: [hello, bye]}
    assert:
      - {type: javascript, value: "output.length"}
      - {type: icontains, value: "{{text}} in French"}
  - vars: {text: yes, language: German}
    assert: [{type: equals, value: ja}]
"""


def test_a_promptfoo_config_is_imported(project: Project, store: Kept) -> None:
    done = import_test_cases(project.write("promptfooconfig.yaml", PROMPTFOO))
    assert done.left_out == 4, "the check of the length, in four test cases"
    assert pairs(store) == [
        ("Translate to French: hello", "hello in French"),
        ("Translate to French: bye", "bye in French"),
        ("In French, hello is", "hello in French"),
        ("In French, bye is", "bye in French"),
        ("Translate to German: yes", "ja"),
        ("In German, yes is", "ja"),
    ]
    assert cases(store)[0].description == "greeting"


def test_values_of_promptfoo_are_written_as_it_writes_them(project: Project, store: Kept) -> None:
    variables = {"flag": True, "number": 2, "nothing": None, "data": {"a": ["é"]}}
    test = {"vars": variables, "assert": [{"type": "equals", "value": False}]}
    config = {"prompts": ["{{flag}} {{number}} {{nothing}} {{data}}"], "tests": [test]}
    import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [('true 2  {"a": ["é"]}', "false")]


def test_tests_of_promptfoo_may_be_a_table(project: Project, store: Kept) -> None:
    project.write("tests.csv", "word,__expected\nhello,bonjour\nbye,contains: au revoir\n")
    config = {"prompts": ["French for {{word}}?"], "tests": "file://tests.csv"}
    import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [("French for hello?", "bonjour"), ("French for bye?", "au revoir")]


def test_what_cannot_be_read_of_promptfoo_is_told(project: Project, store: Kept) -> None:
    file = project.write(
        "promptfooconfig.yaml",
        """
        prompts:
          - file://prompt.txt
          - "{{ text | upper }}"
        tests:
          - vars: {text: a}
            assert: [{type: equals, value: A}]
          - vars: {text: a}
            assert: [{type: llm-rubric, value: nice}]
          - file://more.yaml
          - vars: {other: a}
            assert: [{type: equals, value: "{{text}}"}]
        scenarios: [{config: [{vars: {text: b}}], tests: [{assert: []}]}]
        """,
    )
    codes = [code for _, code in refused(file)]
    assert sorted(codes) == sorted(["wrong-value"] * 3 + ["bad-token"] * 3 + ["missing-key"])
    assert cases(store) == []


def test_what_is_wrong_with_every_prompt_of_a_test_is_told_once(
    project: Project, store: Kept
) -> None:
    test = {"vars": {"x": "a"}, "assert": [{"type": "llm-rubric", "value": "nice"}]}
    config = {"prompts": ["{{x}}", "Say {{x}}"], "tests": [test, test]}
    file = project.write("promptfooconfig.yaml", json.dumps(config, indent=1))
    assert [code for _, code in refused(file)] == ["missing-key"] * 2


def test_texts_of_promptfoo_in_other_files_are_refused(project: Project, store: Kept) -> None:
    tests = [
        {"vars": {"doc": "file://doc.txt"}, "assert": [{"type": "equals", "value": "x"}]},
        {"vars": {"doc": "x"}, "assert": [{"type": "equals", "value": "file://expected.txt"}]},
    ]
    config = {"prompts": ["Read {{doc}}"], "tests": tests}
    file = project.write("config.json", json.dumps(config))
    assert [code for _, code in refused(file)] == ["wrong-value", "wrong-value"]


def test_other_json_is_refused(project: Project, store: Kept) -> None:
    assert refused(project.write("data.json", "{}")) == [("data.json:1:1", "unknown-format")]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"input": "x" * 10_001}, "too-large"),
        ({"input": ""}, "wrong-value"),
        ({"expected_output": "x" * 10_001}, "too-large"),
        ({"description": "x" * 501}, "too-large"),
        ({"description": 5}, "wrong-type"),
        ({"tags": ["x"] * 5 + list("abcdefghij")}, "too-large"),
        ({"tags": [""]}, "wrong-value"),
        ({"tags": "x"}, "wrong-type"),
        ({"input": "a\0"}, "bad-character"),
    ],
)
def test_what_is_no_test_case_is_refused(
    project: Project, store: Kept, entry: dict[str, Any], code: str
) -> None:
    good = {"input": "x", "expected_output": "y"}
    lines = [json.dumps(good), json.dumps(good | entry)]
    file = project.write("some.jsonl", "\n".join(lines))
    assert code in [code for place, code in refused(file) if place.startswith("some.jsonl:2")]
    assert cases(store) == []  # not the good one either


def test_a_case_that_is_no_text_is_refused_with_its_place(project: Project, store: Kept) -> None:
    file = project.write(
        "talk.eval.yaml",
        """
        cases:
          - id: two
            input: [{role: user, content: a}, {role: user, content: b}]
            expected_output: c
          - {id: none, input: a, expect: {responseContains: [b]}}
        """,
    )
    assert refused(file) == [
        ("talk.eval.yaml:2:1", "missing-key"),
        ("talk.eval.yaml:5:1", "missing-key"),
    ]


def test_an_id_is_given_once(project: Project, store: Kept) -> None:
    line = json.dumps({"id": ID, "input": "x", "expected_output": "y"})
    file = project.write("twice.jsonl", f"{line}\n{line}\n")
    assert [code for _, code in refused(file)] == ["duplicate-id"]
    once = project.write("once.jsonl", line)
    import_test_cases(once)

    store.test_cases.remove(ID, datetime.now(UTC)).result()
    assert [code for _, code in refused(once)] == ["duplicate-id"]


def test_a_missing_file_is_refused(project: Project, store: Kept) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml does not exist"):
        import_test_cases("none.yaml")


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)
CASE = st.builds(
    NewTestCase,
    TEXT,
    TEXT,
    st.none() | TEXT,
    st.lists(TEXT, max_size=3, unique=True).map(tuple),
    st.uuids(version=4).map(str),
)


@pytest.mark.parametrize("form", test_cases.FORMATS)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CASE, min_size=1, max_size=4, unique_by=lambda case: case.id))
def test_what_is_exported_can_be_imported(
    project: Project,
    store: Kept,
    form: str,
    new: list[NewTestCase],
) -> None:
    store.__init__()  # type: ignore[misc]

    for case in new:
        store.test_cases.add(case, datetime.now(UTC)).result()
    before = cases(store)
    text = "".join(export_test_cases(form))
    store.__init__()  # type: ignore[misc]
    file = project.write(f"moved.{form}", text.encode())
    import_test_cases(file)
    for one, other in zip(before, cases(store), strict=True):
        written = {name: one.to_dict()[name] for name in FIELDS}
        assert {name: other.to_dict()[name] for name in FIELDS} == written


def test_an_export_has_all_test_cases_whoever_deletes_some_meanwhile(
    project: Project, store: Kept
) -> None:
    for number in range(1002):
        store.test_cases.add(NewTestCase(f"q{number}", "a"), datetime.now(UTC))
    lines = export_test_cases("jsonl")
    first = json.loads(next(lines))
    store.test_cases.remove(first["id"], datetime.now(UTC))
    assert [json.loads(line)["input"] for line in lines] == [f"q{n}" for n in range(1, 1002)]


def test_an_export_can_be_run_as_an_eval_file(project: Project, store: Kept) -> None:

    store.test_cases.add(NewTestCase("a", "b", None, ("t",), ID), datetime.now(UTC)).result()
    for form in test_cases.FORMATS:
        suite = project.suite("".join(export_test_cases(form)), f"moved.eval.{form}")
        (case,) = suite
        assert (case.id, case.question, case.expected_output, case.tags) == (ID, "a", "b", ("t",))
