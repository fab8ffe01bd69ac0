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
from assay.suites.importers import FIELDS
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
          - id: parts
            input_messages: [{role: user, content: [two, lines?]}]
            expected_messages: [{role: assistant, content: [{type: text, value: yes}, two]}]
        """,
    )
    done = import_test_cases(file, tags=["mine"])
    assert (done.added, done.changed, done.unchanged) == (2, 0, 0)
    assert pairs(store) == [("capital of France?", "Paris"), ("two\nlines?", "yes\ntwo")]
    first = cases(store)[0]
    assert (first.description, first.tags) == ("Basic", ("geo", "mine"))
    UUID(first.id)
    project.write("geo.eval.yaml", file.read_text().replace("Paris", "Lyon"))
    again = import_test_cases(file, tags=["mine"])
    assert (again.added, again.changed, again.unchanged) == (0, 1, 1)
    assert (cases(store)[0].id, cases(store)[0].version) == (first.id, 2)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("evaluators: [{type: contains, value: d}]", "this case has 'contains'"),
        ("evaluators: [{type: equals}, {type: latency, threshold: 9}]", "this case has 'latency'"),
        ("evaluators: [{type: not_equals}]", "this case has 'equals'"),
        ("evaluators: [{type: equals, values: [a, b]}]", "this case has 'equals'"),
        ("evaluators: [{type: equals}, {type: equals}]", "this case has more than one evaluator"),
        ("evaluators: [{type: equals, value: {a: 1}}]", "this case expects data"),
        ("expected_outcome: is polite", "this case has 'llm_judge'"),
        ("rubrics: [is polite]", "this case has 'rubric'"),
        ("skip: waits for the API", "the case is skipped: waits for the API"),
    ],
)
def test_an_entry_that_a_test_case_cannot_express_is_refused(
    project: Project, store: Kept, keys: str, reason: str
) -> None:
    good = "{id: b, input: b, expected_output: c}"
    cases_text = f"[{{id: a, input: b, expected_output: c, {keys}}}, {good}]"
    file = project.write("a.eval.yaml", f"cases: {cases_text}")
    done = import_test_cases(file)
    assert (done.added, done.refused) == (1, 1)
    (problem,) = done.problems
    assert (problem.code, problem.line) == ("not-importable", 1)
    assert reason in problem.message
    assert pairs(store) == [("b", "c")]


def test_the_value_of_an_equals_evaluator_is_expected(project: Project, store: Kept) -> None:
    judged = "{id: a, input: b, expected_output: c, evaluators: [{type: equals, value: d}]}"
    import_test_cases(project.write("a.eval.yaml", f"cases: [{judged}]"))
    assert pairs(store) == [("b", "d")]


def test_expected_data_and_files_are_refused(project: Project, store: Kept) -> None:
    project.write("answer.txt", "yes")
    file = project.write(
        "a.eval.yaml",
        """
        - {id: data, input: a, expected_output: {a: 1}}
        - {id: number, input: a, expected_output: 42}
        - id: file
          input: a
          expected_messages:
            - {role: assistant, content: [{type: file, value: answer.txt}]}
        - id: asks-with-a-file
          input_messages: [{role: user, content: [{type: file, value: answer.txt}]}]
          expected_output: b
        """,
    )
    assert refused(file) == [(f"a.eval.yaml:{n}:1", "not-importable") for n in (1, 2, 3, 7)]


def test_refusals_are_printed_and_counted(project: Project, store: Kept) -> None:
    lines = [{"input": "a", "ideal": "b"}, {"input": "c", "ideal": ["d", "e"]}]
    project.write("s.jsonl", "\n".join(map(json.dumps, lines)))
    result = invoke("import", "s.jsonl")
    assert result.exit_code == 1
    assert result.stdout == "test cases: 1 added, 0 changed, 0 as before, 1 refused\n"
    assert result.stderr.startswith(
        "s.jsonl:2:1: error[not-importable]: 'ideal' has several accepted texts"
    )
    project.write("s.jsonl", json.dumps(lines[0]))
    assert invoke("import", "s.jsonl").exit_code == 0
    project.write("s.jsonl", json.dumps(lines[1]))
    nothing = invoke("import", "s.jsonl")
    assert (nothing.exit_code, nothing.stdout) == (2, "")


def test_many_refusals_are_cut(project: Project, store: Kept) -> None:
    bad = json.dumps({"input": "c", "ideal": ["d", "e"]}) + "\n"
    project.write("s.jsonl", bad * 103 + '{"input": "a", "ideal": "b"}')
    result = invoke("import", "s.jsonl")
    assert result.stdout.endswith(" 103 refused\n")
    assert result.stderr.endswith("... and 3 more\n")


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
            input_messages:
              - {role: user, content: hello}
            expected_messages:
              - {role: assistant, content: hi}
          - id: part
            outcome: says goodbye, in whatever words
            input_messages:
              - {role: user, content: bye}
            expected_messages:
              - {role: assistant, content: goodbye}
        """,
    )
    done = import_test_cases(file)
    assert pairs(store) == [("hello", "hi")]
    assert [problem.message for problem in done.problems] == [
        "a test case only compares the answer with a text; this case has 'llm_judge'"
    ]


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
    ideals: list[Any] = ["4", ["yes", "yes"]]
    samples = [line | {"ideal": ideal} for line, ideal in zip(lines, ideals, strict=True)]
    file = project.write("samples.jsonl", "".join(json.dumps(s) + "\n" for s in samples))
    import_test_cases(file)
    assert pairs(store) == [("Add.\n\n2+2", "4"), ("plain", "yes")]


def test_openai_samples_with_an_assistant_are_refused(project: Project, store: Kept) -> None:
    sample = {"input": [{"role": "assistant", "content": "x"}], "ideal": "y"}
    file = project.write("samples.jsonl", "\n\n" + json.dumps(sample))
    assert refused(file) == [("samples.jsonl:2:1", "wrong-type")]
    assert cases(store) == []


def test_a_bad_line_does_not_lose_the_other_samples(project: Project, store: Kept) -> None:
    good = json.dumps({"input": "a", "ideal": "b"})
    bad = ['{"input": "x"', '{"input": "x"}', '{"input": "x", "ideal": 5}', "[]"]
    twice = '{"input": "x", "input": "y", "ideal": "z"}'
    several = '{"input": "x", "ideal": ["y", "z"]}'
    file = project.write("samples.jsonl", "\n".join([good, *bad, twice, several, good]))
    done = import_test_cases(file)
    assert (done.added, done.refused) == (2, 6)
    assert [(p.line, p.code) for p in done.problems] == [
        (2, "json-syntax"),
        (6, "duplicate-key"),
        (3, "missing-key"),
        (5, "missing-key"),
        (7, "not-importable"),
        (4, "wrong-type"),
    ]


def test_a_bad_line_does_not_lose_other_test_cases(project: Project, store: Kept) -> None:
    good = json.dumps({"input": "a", "expected_output": "b"})
    done = import_test_cases(project.write("some.jsonl", f"{good}\n{{\n{good}\n"))
    assert (done.added, done.refused) == (2, 1)
    table = project.write("some.csv", "input,expected_output\na,b\nc\nd,e\n")
    done = import_test_cases(table)
    assert (done.added, done.refused) == (2, 1)
    (problem,) = done.problems
    assert (problem.place, problem.code) == ("some.csv:3:1", "csv-syntax")


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
providers: [openai:gpt-6-sol]
defaultTest: {vars: {language: French}}
tests:
  - description: greeting
    vars: {text: [hello, bye]}
    assert:
      - {type: equals, value: "{{text}} in French", metric: exact}
  - vars: {text: yes, language: German}
    assert: [{type: equals, value: ja}]
"""


def test_a_promptfoo_config_is_imported(project: Project, store: Kept) -> None:
    done = import_test_cases(project.write("promptfooconfig.yaml", PROMPTFOO))
    assert done.refused == 0
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
    variables = {"flag": True, "number": 2.0, "nothing": None, "data": {"a": ["é"]}}
    test = {"vars": variables, "assert": [{"type": "equals", "value": False}]}
    config = {"prompts": ["{{flag}} {{number}} {{nothing}} {{data}}"], "tests": [test]}
    import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [('true 2  {"a": ["é"]}', "false")]


EQUALS = {"type": "equals", "value": "x"}


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ({"assert": [{"type": "contains", "value": "shipped"}]}, "assertion 'contains'"),
        ({"assert": [{"type": "icontains", "value": "x"}]}, "assertion 'icontains'"),
        ({"assert": [{"type": "not-equals", "value": "x"}]}, "assertion 'not-equals'"),
        ({"assert": [{"type": "similar", "value": "x", "threshold": 0.8}]}, "'similar'"),
        ({"assert": [EQUALS, {"type": "latency", "threshold": 5}]}, "assertion 'latency'"),
        ({"assert": [{"$ref": "#/assertionTemplates/x"}]}, "an assertion without a type"),
        ({"assert": [EQUALS, {"type": "equals", "value": "y"}]}, "cannot equal several texts"),
        ({"assert": [{"type": "equals", "value": {"a": 1}}]}, "is not a text"),
        ({"assert": [EQUALS | {"transform": "output.trim()"}]}, "has 'transform'"),
        ({"assert": [EQUALS | {"weight": 0}]}, "has 'weight'"),
        ({"assert": [EQUALS], "options": {"transform": "f"}}, "the option 'transform'"),
        ({"assert": [EQUALS], "assertScoringFunction": "f"}, "has 'assertScoringFunction'"),
        ({"assert": [EQUALS], "vars": "file://vars.yaml"}, "'vars' of the test is not a mapping"),
        ({}, "the test has no assertion"),
    ],
)
def test_a_promptfoo_test_that_means_something_else_is_refused(
    project: Project, store: Kept, test: dict[str, Any], reason: str
) -> None:
    config = {"prompts": ["Where is it?"], "tests": [{"assert": [EQUALS]}, test]}
    done = import_test_cases(project.write("config.json", json.dumps(config)))
    assert (done.added, done.refused) == (1, 1)
    (problem,) = done.problems
    assert problem.code == "not-importable"
    assert reason in problem.message
    assert pairs(store) == [("Where is it?", "x")]


def test_assertions_of_the_default_test_count(project: Project, store: Kept) -> None:
    config = {
        "prompts": ["Where?"],
        "defaultTest": {"assert": [{"type": "is-json"}]},
        "tests": [{"assert": [EQUALS]}],
    }
    file = project.write("config.json", json.dumps(config))
    assert refused(file) == [("config.json:1:85", "not-importable")]
    config["defaultTest"] = "file://default.yaml"
    assert refused(project.write("config.json", json.dumps(config)))[0][1] == "not-importable"


TABLE = (
    '"word","__expected","__expected1","__description"\n'
    "hello,bonjour,,greeting\n"
    "bye,contains: au revoir,,\n"
    "a,grade: is French,,\n"
    "b,javascript: output.length > 3,,\n"
    "c,similar(0.8): salut,,\n"
    "d,is-json,,\n"
    "e,equals: oui,oui,\n"
    "f,oui,is-json,\n"
    "g,oui,non,\n"
    "h,note: oui,,\n"
    "i,,,\n"
)


@pytest.mark.parametrize("listed", [False, True])
def test_tests_of_promptfoo_may_be_a_table(project: Project, store: Kept, listed: bool) -> None:
    project.write("tests.csv", TABLE)
    tests: Any = ["file://tests.csv"] if listed else "file://tests.csv"
    config = {"prompts": ["French for {{word}}?"], "tests": tests}
    done = import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [
        ("French for hello?", "bonjour"),
        ("French for e?", "oui"),
        ("French for h?", "note: oui"),
    ]
    assert cases(store)[0].description == "greeting"
    assert done.refused == 8
    assert [p.line for p in done.problems] == [3, 4, 5, 6, 7, 9, 10, 12]
    assert {p.file for p in done.problems} == {"tests.csv"}
    kinds = ("contains", "grade", "javascript", "similar", "is-json", "is-json")
    named = [p.message for p in done.problems[:6]]
    assert all(f"the assertion {kind!r}" in text for kind, text in zip(kinds, named, strict=True))


def test_a_table_says_how_the_question_begins_and_ends(project: Project, store: Kept) -> None:
    head = "w,__expectedN,__prefix,__suffix,__metadata:a,__config:__expected:threshold,__metric\n"
    project.write("tests.csv", f"{head}a,x,Say ,!,m,,n\nb,x,,,,0.5,\nc,x\n")
    config = {"prompts": ["{{w}}"], "tests": "tests.csv"}
    done = import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [("Say a!", "x")]
    assert [(p.line, p.code) for p in done.problems] == [(3, "not-importable"), (4, "csv-syntax")]


@pytest.mark.parametrize("name", ["../secret.csv", "{root}/../secret.csv", "link.csv"])
def test_a_table_outside_of_the_project_is_not_read(
    project: Project, store: Kept, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project.root / "home"
    project.write("home/assay.yaml", "targets: []")
    outside = project.write("secret.csv", "word,__expected\nhello,bonjour\n")
    (home / "link.csv").symlink_to(outside)
    monkeypatch.chdir(home)
    written = name.replace("{root}", str(home))
    config = {"prompts": ["{{word}}"], "tests": f"file://{written}"}
    file = project.write("home/config.json", json.dumps(config))
    assert [code for _, code in refused(file)] == ["outside-root"]
    project.write("home/assay.yaml", "allow_outside_root: true")
    assert import_test_cases(file).added == 1


@pytest.mark.parametrize(
    "tests", ["huggingface://datasets/a/b", "tests.yaml", "https://x.test/a.csv", {"path": "a.csv"}]
)
def test_other_sources_of_tests_are_refused(project: Project, store: Kept, tests: Any) -> None:
    config = {"prompts": ["{{word}}"], "tests": tests}
    file = project.write("config.json", json.dumps(config))
    assert [code for _, code in refused(file)] == ["not-importable"]


@pytest.mark.parametrize(
    "prompt",
    [
        "file://prompt.txt",
        "prompts/ask.txt",
        "ask.py:build",
        '[{"role": "system", "content": "x"}]',
        "- role: system\n  content: x",
        {"id": "ask.txt"},
        5,
    ],
)
def test_a_prompt_that_is_not_one_text_is_refused(
    project: Project, store: Kept, prompt: Any
) -> None:
    config = {"prompts": [prompt, "Where?"], "tests": [{"assert": [EQUALS]}]}
    done = import_test_cases(project.write("config.json", json.dumps(config)))
    assert (done.added, done.refused) == (1, 1)
    assert pairs(store) == [("Where?", "x")]


def test_a_config_without_prompts_asks_with_the_variable(project: Project, store: Kept) -> None:
    config = {"tests": [{"vars": {"prompt": "Where?"}, "assert": [EQUALS]}]}
    import_test_cases(project.write("config.json", json.dumps(config)))
    assert pairs(store) == [("Where?", "x")]


def test_unsupported_parts_of_promptfoo_are_reported(project: Project, store: Kept) -> None:
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
    assert sorted(codes) == sorted(["not-importable"] * 4 + ["bad-token"] * 2)
    assert cases(store) == []


def test_refused_tests_do_not_change_the_ids_of_others(project: Project, store: Kept) -> None:
    tests: list[Any] = ["more.yaml", {"assert": [EQUALS]}]
    file = project.write("config.json", json.dumps({"prompts": ["Where?"], "tests": tests}))
    import_test_cases(file)
    (before,) = cases(store)
    tests[0] = {"assert": [EQUALS | {"value": "y"}]}
    project.write("config.json", json.dumps({"prompts": ["Where?"], "tests": tests}))
    done = import_test_cases(file)
    assert (done.added, done.unchanged) == (1, 1)
    assert before in cases(store)


def test_a_problem_of_every_prompt_of_a_test_is_reported_once(
    project: Project, store: Kept
) -> None:
    test = {"vars": {"x": "a"}, "assert": [{"type": "llm-rubric", "value": "nice"}]}
    config = {"prompts": ["{{x}}", "Say {{x}}"], "tests": [test, test]}
    file = project.write("promptfooconfig.yaml", json.dumps(config, indent=1))
    assert [code for _, code in refused(file)] == ["not-importable"] * 2


def test_texts_of_promptfoo_in_other_files_are_refused(project: Project, store: Kept) -> None:
    tests = [
        {"vars": {"doc": "file://doc.txt"}, "assert": [{"type": "equals", "value": "x"}]},
        {"vars": {"doc": "x"}, "assert": [{"type": "equals", "value": "file://expected.txt"}]},
    ]
    config = {"prompts": ["Read {{doc}}"], "tests": tests}
    file = project.write("config.json", json.dumps(config))
    assert [code for _, code in refused(file)] == ["not-importable", "not-importable"]


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
def test_an_invalid_test_case_is_refused(
    project: Project, store: Kept, entry: dict[str, Any], code: str
) -> None:
    good = {"input": "x", "expected_output": "y"}
    lines = [json.dumps(good), json.dumps(good | entry)]
    file = project.write("some.jsonl", "\n".join(lines))
    done = import_test_cases(file)
    assert (done.added, done.refused) == (1, 1)
    assert (2, code) in [(p.line, p.code) for p in done.problems]


def test_a_case_that_is_not_text_is_refused_with_its_place(project: Project, store: Kept) -> None:
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
        ("talk.eval.yaml:2:1", "not-importable"),
        ("talk.eval.yaml:5:1", "not-importable"),
    ]


def test_an_id_is_given_once(project: Project, store: Kept) -> None:
    line = json.dumps({"id": ID, "input": "x", "expected_output": "y"})
    file = project.write("twice.jsonl", f"{line}\n{line}\n")
    done = import_test_cases(file)
    assert (done.added, [p.code for p in done.problems]) == (1, ["duplicate-id"])
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
def test_an_export_can_be_imported(
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
        written = {name: getattr(one, name) for name in FIELDS}
        assert {name: getattr(other, name) for name in FIELDS} == written


def test_an_export_has_all_test_cases_despite_concurrent_deletes(
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
