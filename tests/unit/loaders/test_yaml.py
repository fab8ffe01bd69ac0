"""YAML suites: the dialect, the root, the keys of a case, evaluators, messages, files, places."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.model.message import ContentPart

if TYPE_CHECKING:
    from unit.conftest import Project

CASE = "id: a\ninput: Hello\nexpected_output: Hi\n"  # a root mapping that is a case
LISTED = "- id: a\n  input: Hello\n  expected_output: Hi\n"


def with_evaluators(entries: str) -> str:
    """A case whose evaluators start on line 4."""
    return f"id: a\ninput: Hello\nevaluators:\n{indent(entries, '  ')}"


def messages(raw: tuple[assay.Message, ...]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in raw]


def types(case: assay.EvalCase) -> list[str]:
    return [spec.type for spec in case.evaluators]


# Dialect


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("No", "No"),
        ("on", "on"),
        ("yes", "yes"),
        ("off", "off"),
        ("y", "y"),
        ("2025-01-01", "2025-01-01"),
        ("2025-01-01T10:00:00Z", "2025-01-01T10:00:00Z"),
        ("012", "012"),
        ("00", "00"),
        ("-012", "-012"),
        ("01.5", "01.5"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("1.2.3", "1.2.3"),
        ("0b11", "0b11"),
        (".", "."),
        ("=", "="),
        ("tRue", "tRue"),
        ("nUll", "nUll"),
        ("'12'", "12"),
        ('"null"', "null"),
        ('""', ""),
        ("|\n    two\n    lines\n", "two\nlines\n"),
        ("0o10", 8),
        ("0x1F", 31),
        ("0", 0),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("18446744073709551615", 2**64 - 1),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-0.25E-2", -0.0025),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("False", False),
        ("FALSE", False),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("~", None),
        ("", None),
        ("# only a comment", None),
    ],
)
def test_scalars_are_read_as_written(project: Project, written: str, value: object) -> None:
    case = project.case(f"{CASE}metadata:\n  value: {written}\n")
    found = case.metadata["value"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("key", ["no", "012", "12", "2025-01-01", "null", "true", "1.5"])
def test_keys_are_text(project: Project, key: str) -> None:
    assert project.case(f"{CASE}metadata:\n  {key}: 1\n").metadata == {key: 1}


@pytest.mark.parametrize("number", [".inf", "-.Inf", ".NAN", "1e400", "18446744073709551616"])
def test_numbers_are_finite_and_fit_64_bits(project: Project, number: str) -> None:
    place, message = project.refused(f"{CASE}metadata:\n  value: {number}\n")
    assert place == "5:10 bad-number"
    assert number in message


def test_a_number_is_not_an_id(project: Project) -> None:
    place, message = project.refused("id: 12\ninput: Hello\nexpected_output: Hi\n")
    assert place == "1:5 wrong-type"
    assert "put it in quotes" in message


@pytest.mark.parametrize("identity", ["012", "no", "2025-01-01", "Größe 7"])
def test_ids_that_older_yaml_would_change(project: Project, identity: str) -> None:
    assert project.case(f"id: {identity}\ninput: Hello\nexpected_output: Hi\n").id == identity


def test_duplicate_keys_are_an_error(project: Project) -> None:
    place, message = project.refused(f"{CASE}input: Again\n")
    assert place == "4:1 duplicate-key"
    assert "'input' appears twice; first on line 2" in message


def test_duplicate_keys_deep_inside(project: Project) -> None:
    assert project.refusals(f"{CASE}metadata: {{b: 1, a: {{c: 1, d: 2, c: 3}}}}\n") == [
        "4:34 duplicate-key"
    ]


def test_a_duplicate_key_does_not_move_other_positions(project: Project) -> None:
    text = "id: a\ninput: Hello\ninput: [x, y]\nexpected_output: Hi\nthreshold: 7\n"
    assert project.refusals(text) == ["3:1 duplicate-key", "5:12 wrong-value"]


def test_anchors_and_aliases(project: Project) -> None:
    suite = project.suite(
        """
        - id: a
          input: &question What is up?
          expected_output: &answer {mood: [good, 1]}
        - id: b
          input: *question
          expected_output: *answer
        """
    )
    first, second = suite
    assert second.input_messages == first.input_messages
    assert second.expected_output == {"mood": ["good", 1]}
    assert second.origin_of("expected_output.mood.1") == ("suite.yaml", 3, 42)


def test_merge_keys(project: Project) -> None:
    suite = project.suite(
        """
        - &base
          id: a
          input: Hello
          expected_output: Hi
          metadata: {level: 1}
        - <<: *base
          id: b
          input: Goodbye
        """
    )
    merged = suite.cases[1]
    assert (merged.id, merged.question, merged.expected_output) == ("b", "Goodbye", "Hi")
    assert merged.metadata == {"level": 1}
    assert merged.origin_of("input") == ("suite.yaml", 8, 10)
    assert merged.origin_of("metadata.level") == ("suite.yaml", 5, 21)


def test_merge_keys_of_a_list_earlier_sources_win(project: Project) -> None:
    case = project.case(
        """
        id: a
        input: Hello
        expected_output: Hi
        metadata:
          x: &one {a: 1, b: 1}
          y: &two {b: 2, c: 2}
          z: {c: 3, <<: [*one, *two]}
        """
    )
    assert case.metadata["z"] == {"a": 1, "b": 1, "c": 3}


def test_a_quoted_merge_key_is_a_key(project: Project) -> None:
    assert project.case(f"{CASE}metadata: {{'<<': 1}}\n").metadata == {"<<": 1}


def test_merge_of_something_else(project: Project) -> None:
    place, message = project.refused(f"{CASE}metadata: {{<<: 5}}\n")
    assert place in ("4:12 wrong-type", "4:16 wrong-type")  # the key or its value
    assert "'<<' merges a mapping" in message


@pytest.mark.parametrize(
    ("line", "place", "word"),
    [
        ("metadata: {a: *nowhere}", "4:15 yaml-alias", "&nowhere"),
        ("metadata: &m {a: *m}", "4:18 yaml-alias", "contains itself"),
        ("metadata: {a: !!str 12}", "4:15 yaml-tag", "!!str"),
        ("metadata: {a: !secret 12}", "4:15 yaml-tag", "!secret"),
        ("metadata: {? [a] : 1}", "4:14 yaml-key", "must be text"),
        ("metadata: {a: 1", "5:1 yaml-syntax", ""),
        ("metadata: a: b", "4:12 yaml-syntax", "in quotes"),
        ("\tmetadata: a", "4:1 yaml-syntax", "tabs"),
        ("...\n---\nid: b", "5:1 multiple-documents", "second"),
        ('description: "\\0"', "4:14 bad-character", "NUL"),
    ],
)
def test_unsupported_yaml_is_rejected(project: Project, line: str, place: str, word: str) -> None:
    found, message = project.refused(f"{CASE}{line}\n")
    assert found == place
    assert word in message


def test_an_alias_bomb_is_refused(project: Project) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    place, message = project.refused(f"{CASE}metadata:\n{indent(chr(10).join(levels), '  ')}\n")
    assert place.split()[1] == "yaml-alias"
    assert "1,000,000" in message


def test_a_merge_bomb_is_refused(project: Project) -> None:
    wide = "w: &w {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n"
    many = "m:\n" + "".join("  - {<<: *w}\n" for _ in range(1001))
    place, message = project.refused(f"{CASE}metadata:\n{indent(wide + many, '  ')}")
    assert place.split()[1] == "yaml-alias"
    assert "1,000,000" in message


def test_deep_nesting_is_refused(project: Project) -> None:
    place, message = project.refused(f"{CASE}metadata: {{a: {'[' * 5000}{']' * 5000}}}\n")
    assert place == "4:113 too-deep"
    assert "100 levels" in message


def test_nesting_within_the_limit(project: Project) -> None:
    value = project.case(f"{CASE}metadata: {{a: {'[' * 98}{']' * 98}}}\n").metadata["a"]
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 97


def test_byte_order_mark_and_crlf(project: Project) -> None:
    text = "\ufeff" + LISTED.replace("\n", "\r\n") + "  threshold: 2\r\n"
    assert project.refusals(text) == ["4:14 wrong-value"]
    case = project.case("\ufeff" + LISTED.replace("\n", "\r\n"))
    assert (case.question, case.expected_output) == ("Hello", "Hi")
    assert case.origin == ("suite.yaml", 1, 3)


def test_text_must_be_utf_8(project: Project) -> None:
    place, message = project.refused(b"id: a\ninput: caf\xe9\n")
    assert place == "2:11 encoding"
    assert "0xe9" in message


# Root


def test_root_mapping(project: Project) -> None:
    suite = project.suite(
        """
        description: About greetings
        dataset: greetings
        execution:
          target: bot
          evaluators: [{type: is_json}]
          threshold: 0.5
          repeat: 3
          timeout_seconds: 9.5
          workers: 4
        cases:
          - {id: a, input: Hello}
          - id: b
            input: Bye
            threshold: 0.9
            repeat: 1
            execution: {target: other, timeout_seconds: 1}
        """
    )
    assert (suite.name, suite.description) == ("greetings", "About greetings")
    assert (suite.target, suite.workers, suite.tier) == ("bot", 4, "suite")
    first, second = suite
    assert (first.target, first.threshold, first.repeat, first.timeout_seconds) == (
        "bot",
        0.5,
        3,
        9.5,
    )
    assert (second.target, second.threshold, second.repeat, second.timeout_seconds) == (
        "other",
        0.9,
        1,
        1,
    )
    assert types(first) == types(second) == ["is_json"]


def test_keys_of_a_case_override_its_execution_and_that_of_the_suite(project: Project) -> None:
    suite = project.suite(
        """
        execution: {threshold: 0.1, repeat: 1, target: a, timeout_seconds: 1}
        cases:
          - {id: a, input: x, expected_output: y}
          - id: b
            input: x
            expected_output: y
            execution: {threshold: 0.2, repeat: 2, target: b, timeout_seconds: 2}
          - id: c
            input: x
            expected_output: y
            threshold: 0
            repeat: 3
            execution: {threshold: 0.2, repeat: 2}
        """
    )
    assert [(c.threshold, c.repeat, c.target, c.timeout_seconds) for c in suite] == [
        (0.1, 1, "a", 1),
        (0.2, 2, "b", 2),
        (0, 3, "a", 1),
    ]


@pytest.mark.parametrize("key", ["cases", "evalcases", "eval_cases", "tests"])
def test_spellings_of_cases(project: Project, key: str) -> None:
    suite = project.suite(f"{key}:\n{indent(LISTED, '  ')}")
    assert [case.id for case in suite] == ["a"]
    assert suite.warnings == ()
    assert suite.cases[0].origin == ("suite.yaml", 2, 5)


def test_root_list(project: Project) -> None:
    suite = project.suite(LISTED + LISTED.replace("id: a", "id: b"), "greet.eval.yaml")
    assert [case.id for case in suite] == ["a", "b"]
    assert suite.name == "greet"


def test_a_file_named_like_a_suffix_still_has_a_name(project: Project) -> None:
    suite = project.suite("input: Hello\nexpected_output: Hi\n", ".eval.yaml")
    assert (suite.name, [case.id for case in suite]) == (".eval", [".eval"])


def test_root_case(project: Project) -> None:
    suite = project.suite("input: Hello\nexpected_output: Hi\n", "greeting.yml")
    (case,) = suite
    assert (case.id, case.origin) == ("greeting", ("greeting.yml", 1, 1))
    assert project.case(CASE, "greeting.yaml").id == "a"


def test_root_case_with_the_canonical_key(project: Project) -> None:
    text = "input_messages: [{role: user, content: Hello}]\nexpected_output: Hi\n"
    assert project.case(text, "greeting.yaml").id == "greeting"


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("", "1:1 no-cases", "empty"),
        ("# nothing\n", "1:1 no-cases", "empty"),
        ("hello\n", "1:1 no-cases", "'hello'"),
        ("12\n", "1:1 no-cases", "12"),
        ("[]\n", "1:1 no-cases", "the list of cases is empty"),
        ("{}\n", "1:1 no-cases", "no 'cases' key and no input"),
        ("description: x\ncases: []\n", "2:8 no-cases", "the list of cases is empty"),
        ("description: x\n", "1:1 no-cases", "no 'cases' key"),
        ("cases: {a: 1}\n", "1:8 wrong-type", "a list"),
        ("tests: hello\n", "1:8 file-not-found", "no file 'hello'"),
        ("cases:\n", "1:7 wrong-type", "null"),
        ("- hello\n", "1:3 wrong-type", "a mapping"),
        ("cases:\n  - [a]\n", "2:5 wrong-type", "a mapping"),
    ],
)
def test_wrong_roots(project: Project, text: str, place: str, word: str) -> None:
    found, message = project.refused(text)
    assert found == place
    assert word in message


@pytest.mark.parametrize(
    ("line", "place", "word"),
    [
        ("descripton: x", "1:1 unknown-key", "'description'"),
        ("description: 5", "1:14 wrong-type", "text"),
        ("dataset: ''", "1:10 wrong-value", "empty"),
        ("execution: 5", "1:12 wrong-type", "mapping"),
        ("execution: {treshold: 1}", "1:13 unknown-key", "'threshold'"),
        ("execution: {threshold: 1.1}", "1:24 wrong-value", "<= 1"),
        ("execution: {threshold: -0.1}", "1:24 wrong-value", ">= 0"),
        ("execution: {threshold: high}", "1:24 wrong-type", "number"),
        ("execution: {repeat: 0}", "1:21 wrong-value", ">= 1"),
        ("execution: {repeat: 10001}", "1:21 wrong-value", "<= 10000"),
        ("execution: {workers: 10001}", "1:22 wrong-value", "<= 10000"),
        ("execution: {repeat: 1.5}", "1:21 wrong-type", "whole"),
        ("execution: {repeat: true}", "1:21 wrong-type", "whole"),
        ("execution: {timeout_seconds: 0}", "1:30 wrong-value", "> 0"),
        ("execution: {workers: 0}", "1:22 wrong-value", ">= 1"),
        ("execution: {target: 5}", "1:21 wrong-type", "text"),
        ("execution: {evaluators: 5}", "1:25 wrong-type", "list"),
        ("execution: {evaluators: [5]}", "1:26 wrong-type", "mapping"),
    ],
)
def test_wrong_root_keys(project: Project, line: str, place: str, word: str) -> None:
    found, message = project.refused(f"{line}\ncases:\n{indent(LISTED, '  ')}")
    assert found == place
    assert word in message


def test_a_listed_case_has_no_workers_and_no_dataset(project: Project) -> None:
    text = "- {id: a, input: x, expected_output: y, dataset: d, execution: {workers: 2}}\n"
    assert project.refusals(text) == ["1:41 unknown-key", "1:65 unknown-key"]


def test_a_root_that_is_a_case_takes_the_keys_of_the_suite(project: Project) -> None:
    suite = project.suite(f"{CASE}dataset: d\nexecution: {{workers: 2, target: t, repeat: 3}}\n")
    assert (suite.name, suite.workers, suite.target) == ("d", 2, "t")
    (case,) = suite
    assert (case.target, case.repeat) == ("t", 3)


def test_wrong_suite_keys_of_a_root_that_is_a_case(project: Project) -> None:
    text = f"{CASE}dataset: 5\nexecution: {{workers: 0}}\n"
    assert project.refusals(text) == ["4:10 wrong-type", "5:22 wrong-value"]


def test_rubrics_that_are_null_are_not_given(project: Project) -> None:
    case = project.case("""
        id: a
        input: x
        rubrics: null
        expect: {response_contains: [y]}
    """)
    assert [spec.type for spec in case.evaluators] == ["expect"]
    assert case.origin_of("evaluators.0") == ("suite.yaml", 4, 9)


# Spellings


@pytest.mark.parametrize("key", ["expected_outcome", "outcome", "criteria"])
def test_spellings_of_expected_outcome(project: Project, key: str) -> None:
    case = project.case(f"id: a\ninput: Hello\n{key}: Is kind\n")
    assert case.expected_outcome == "Is kind"
    assert case.origin_of("expected_outcome") == ("suite.yaml", 3, len(key) + 3)


@pytest.mark.parametrize("key", ["input_messages", "input"])
@pytest.mark.parametrize("value", ["Hello", "[{role: user, content: Hello}]"])
def test_spellings_of_input_messages(project: Project, key: str, value: str) -> None:
    case = project.case(f"id: a\n{key}: {value}\nexpected_output: Hi\n")
    assert messages(case.input_messages) == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("key", ["expected_messages", "expected_output"])
@pytest.mark.parametrize("value", ["Hi", "[{role: assistant, content: Hi}]"])
def test_spellings_of_expected_messages(project: Project, key: str, value: str) -> None:
    case = project.case(f"id: a\ninput: Hello\n{key}: {value}\n")
    assert messages(case.expected_messages) == [{"role": "assistant", "content": "Hi"}]


@pytest.mark.parametrize("key", ["evaluators", "assert", "assertions"])
@pytest.mark.parametrize("inside", [False, True])
def test_spellings_of_evaluators(project: Project, key: str, inside: bool) -> None:
    lines = f"{key}:\n  - type: is_json\n"
    if inside:
        lines = f"execution:\n{indent(lines, '  ')}"
    suite = project.suite(f"id: a\ninput: Hello\n{lines}")
    assert types(suite.cases[0]) == ["is_json"]
    assert suite.warnings == ()
    place = ("suite.yaml", 5, 13) if inside else ("suite.yaml", 4, 11)
    assert suite.cases[0].origin_of("evaluators.0.type") == place


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("outcome: [wrong]", "expected_outcome: Is kind"),
        ("criteria: [wrong]", "expected_outcome: Is kind"),
        ("input: 5", "input_messages: Hello"),
        ("expected_output: wrong", "expected_messages: Hi"),
        ("assert: wrong", "evaluators: [{type: equals}]"),
        ("assertions: wrong", "evaluators: [{type: equals}]"),
    ],
)
@pytest.mark.parametrize("alias_first", [False, True])
def test_the_canonical_name_wins_with_a_warning(
    project: Project, alias: str, canonical: str, alias_first: bool
) -> None:
    lines = [alias, canonical] if alias_first else [canonical, alias]
    rest = [] if canonical.startswith("input") else ["input: Hello"]
    if not canonical.startswith("expected_m"):
        rest.append("expected_output: Hi")
    suite = project.suite("\n".join(["id: a", *lines, *rest]) + "\n")
    (warning,) = suite.warnings
    assert project.place(warning) == f"{2 if alias_first else 3}:1 ignored-alias"
    words = [repr(line.split(":")[0]) for line in (alias, canonical)]
    assert f"{words[0]} is ignored because {words[1]} is given too" in warning.message
    assert warning.severity == "warning"
    case = suite.cases[0]
    assert case.question == "Hello"
    assert case.expected_output == "Hi"


def test_cases_wins_over_its_other_spellings(project: Project) -> None:
    suite = project.suite(
        """
        tests: [{id: b, input: x, expected_output: y}]
        cases: [{id: a, input: x, expected_output: y}]
        """
    )
    assert [case.id for case in suite] == ["a"]
    assert [project.place(warning) for warning in suite.warnings] == ["1:1 ignored-alias"]


@pytest.mark.parametrize("keys", [("tests", "evalcases"), ("evalcases", "tests")])
def test_the_ignored_one_of_two_aliases_is_named(project: Project, keys: tuple[str, str]) -> None:
    suite = project.suite(
        "".join(f"{key}: [{{id: {key}, input: x, expected_output: y}}]\n" for key in keys)
    )
    (warning,) = suite.warnings
    (case,) = suite
    assert f"{case.id!r} is given too" in warning.message


@pytest.mark.parametrize("keys", [("outcome", "criteria"), ("criteria", "outcome")])
def test_the_alias_listed_first_wins_and_has_the_position(
    project: Project, keys: tuple[str, str]
) -> None:
    case = project.case(f"id: a\ninput: Hello\n{keys[0]}: {keys[0]}\n{keys[1]}: {keys[1]}\n")
    assert case.expected_outcome == "outcome"
    assert case.origin_of("expected_outcome").line == 3 + keys.index("outcome")


def test_evaluators_win_over_execution_evaluators_with_a_warning(project: Project) -> None:
    suite = project.suite(
        """
        id: a
        input: Hello
        evaluators: [{type: is_json}]
        execution:
          evaluators: [{type: latency, threshold: 5}]
        """
    )
    assert types(suite.cases[0]) == ["is_json"]
    (warning,) = suite.warnings
    assert project.place(warning) == "5:3 ignored-alias"
    assert "'execution.evaluators' is ignored" in warning.message


def test_an_ignored_list_is_named_in_the_spelling_of_its_author(project: Project) -> None:
    text = """
        id: a
        input: Hello
        assertions: [{type: is_json}]
        execution:
          assert: [{type: is_json}]
        """
    (warning,) = project.suite(text).warnings
    assert project.place(warning) == "5:3 ignored-alias"
    assert "'execution.assert' is ignored because 'assertions' is given" in warning.message


def test_the_known_keys_are_those_that_authors_use(project: Project) -> None:
    (problem,) = project.problems("id: a\ninput: x\nexpected_output: y\nzzzzzz: 1\n")
    known = problem.hint.removeprefix("known here: ").split(", ")
    assert {"input", "expected_output", "assert", "outcome", "skip"} <= set(known)
    assert not {"evaluator", "note"} & set(known)


def test_keys_that_start_with_x_are_the_authors_own(project: Project) -> None:
    suite = project.suite(
        """
        x-root: 1
        execution: {x-execution: 1}
        cases:
          - id: a
            x-case: {any: [thing]}
            input:
              - {role: user, content: Hello, x-message: 1}
            expected_output:
              - role: assistant
                tool_calls: [{tool: t, x-call: 1}]
            rubrics: [{description: kind, x-rubric: 1}]
            evaluators: [{type: code_judge, script: [grade], x-evaluator: 1}]
            expect: {responseNonEmpty: true, x-expect: 1}
        """
    )
    assert suite.warnings == ()
    assert types(suite.cases[0]) == ["code_judge", "rubric", "expect"]


@pytest.mark.parametrize("key", ["evaluator", "note"])
@pytest.mark.parametrize("value", ["text", "{any: [thing]}", "null"])
def test_legacy_keys_are_accepted_with_a_warning(project: Project, key: str, value: str) -> None:
    suite = project.suite(f"{CASE}{key}: {value}\n")
    (warning,) = suite.warnings
    assert project.place(warning) == "4:1 deprecated-key"
    assert repr(key) in warning.message
    assert types(suite.cases[0]) == ["equals"]


@pytest.mark.parametrize(
    ("line", "place", "word"),
    [
        ("expected_ouput: x", "4:1 unknown-key", "'expected_output'"),
        ("evalutors: []", "4:1 unknown-key", "'evaluators'"),
        ("zzz: 1", "4:1 unknown-key", "known here"),
        ("target: mine", "4:1 unknown-key", "it belongs under 'execution'"),
        ("toolsCalled: [a]", "4:1 unknown-key", "it belongs under 'expect'"),
        ("description: 5", "4:14 wrong-type", "text"),
        ("expected_outcome: 5", "4:19 wrong-type", "text"),
        ("expected_outcome: ''", "4:19 wrong-value", "empty"),
        ("rubrics: polite", "4:10 wrong-type", "list"),
        ("rubrics: []", "4:10 wrong-value", "at least 1"),
        ("expect: 5", "4:9 wrong-type", "mapping"),
        ("conversation_id: 5", "4:18 wrong-type", "text"),
        ("execution: 5", "4:12 wrong-type", "mapping"),
        ("tags: one", "4:7 wrong-type", "list"),
        ("tags: [one, 2]", "4:13 wrong-type", "tags[1]"),
        ("metadata: text", "4:11 wrong-type", "mapping"),
        ("threshold: 1.01", "4:12 wrong-value", "<= 1"),
        ("threshold: '1'", "4:12 wrong-type", "number"),
        ("repeat: 0", "4:9 wrong-value", ">= 1"),
        ("repeat: 2.5", "4:9 wrong-type", "whole"),
        ("repeat: 1e300", "4:9 wrong-value", "must fit 64 bits"),
        ("min_pass_rate: 2", "4:16 wrong-value", "<= 1"),
        ("skip: true", "4:7 wrong-type", "for example skip: waits"),
        ("skip: false", "4:7 wrong-type", "leave it out"),
        ("skip: ''", "4:7 wrong-value", "empty"),
        ("cluster: 5", "4:10 wrong-type", "text"),
        ("critical: 1", "4:11 wrong-type", "true or false"),
    ],
)
def test_wrong_case_keys(project: Project, line: str, place: str, word: str) -> None:
    found, message = project.refused(f"{CASE}{line}\n")
    assert found == place
    assert word in message


def test_all_keys_of_a_case(project: Project) -> None:
    case = project.case(
        """
        - id: a
          description: Greets
          expected_outcome: Is kind
          input_messages: Hello
          expected_messages: Hi
          conversation_id: talk-1
          tags: [one, two]
          metadata: {owner: {team: x}}
          threshold: 0.7
          repeat: 3.0
          min_pass_rate: 0.5
          skip: not yet
          cluster: greetings
          critical: true
        """
    )
    assert (case.id, case.description, case.expected_outcome) == ("a", "Greets", "Is kind")
    assert (case.conversation_id, case.tags) == ("talk-1", ("one", "two"))
    assert case.metadata == {"owner": {"team": "x"}}
    assert (case.threshold, case.repeat, case.min_pass_rate) == (0.7, 3, 0.5)
    assert (case.skip, case.cluster, case.critical) == ("not yet", "greetings", True)


def test_a_case_is_not_critical_by_default(project: Project) -> None:
    assert project.case(CASE).critical is False


@pytest.mark.parametrize("text", ["${{ HOME }}", "{{ env.HOME }}", "${HOME}"])
def test_environment_variables_are_never_interpolated_in_cases(project: Project, text: str) -> None:
    case = project.case(f"id: a\ninput: '{text}'\nexpected_output: '{text}'\n")
    assert (case.question, case.expected_output) == (text, text)


# Ids, inputs, assertions


def test_an_id_is_required_in_a_list(project: Project) -> None:
    place, message = project.refused("- input: Hello\n  expected_output: Hi\n")
    assert place == "1:3 missing-key"
    assert "'id'" in message


def test_a_missing_id_and_input_are_reported_together_with_other_faults(project: Project) -> None:
    text = "- tags: x\n- inptu: Hello\n  expected_output: Hi\n- skip: later\n"
    assert project.refusals(text) == [
        "1:3 missing-key",
        "1:3 missing-key",
        "1:3 asserts-nothing",
        "1:9 wrong-type",
        "2:3 unknown-key",
        "2:3 missing-key",
        "4:3 missing-key",
    ]


def test_an_unrelated_unknown_key_does_not_hide_a_missing_one(project: Project) -> None:
    text = "- colour: red\n  expect: {responseContians: [x], minLength: 1}\n"
    assert project.refusals(text) == [
        "1:3 unknown-key",
        "1:3 missing-key",
        "1:3 missing-key",
        "2:12 unknown-key",
    ]


def test_a_wrong_case_that_asserts_nothing_has_both_problems(project: Project) -> None:
    text = "- {id: a, input: x, tags: y, note: z}\n- {id: b, input: x, expected_ouput: y}\n"
    assert project.refusals(text) == [
        "1:3 asserts-nothing",
        "1:27 wrong-type",
        "1:30 deprecated-key",
        "2:21 unknown-key",
    ]


@pytest.mark.parametrize(
    ("evaluator", "slugs"),
    [
        ("{type: contains, weight: x}", ["missing-key", "wrong-type"]),
        ("{type: contains, value: a, weight: x}", ["wrong-type"]),
        (
            "{type: tool_trajectory, expected: [{tool: 5, any_of: [{tool: u}]}]}",
            ["wrong-type", "conflicting-keys"],
        ),
        ("{type: tool_trajectory, mode: no_mode, minimums: {a: 1}}", ["wrong-value"]),
    ],
)
def test_rules_between_keys_are_reported_together_with_wrong_values(
    project: Project, evaluator: str, slugs: list[str]
) -> None:
    problems = project.problems(f"id: a\ninput: x\nexpected_output: y\nassert: [{evaluator}]\n")
    assert [problem.code for problem in problems] == slugs


def test_false_is_not_a_conflict_even_with_wrong_values(project: Project) -> None:
    block = "{toolsCalled: false, toolsAcceptable: [[a]], minLength: x}"
    assert project.refusals(f"id: a\ninput: x\nexpect: {block}\n") == ["3:65 wrong-type"]


@pytest.mark.parametrize("identity", ["''", "' a'", "'a '", '"a\\nb"'])
def test_an_id_is_one_trimmed_line(project: Project, identity: str) -> None:
    text = f"- id: {identity}\n  input: Hello\n  expected_output: Hi\n"
    assert project.refusals(text) == ["1:7 wrong-value"]


def test_ids_are_unique_in_a_file(project: Project) -> None:
    problems = project.problems(LISTED + LISTED.replace("id: a", "id: b") + LISTED * 2)
    assert [project.place(problem) for problem in problems] == [
        "7:7 duplicate-id",
        "10:7 duplicate-id",
    ]
    assert all("'a' is taken by the case on line 1" in p.message for p in problems)


def test_a_duplicate_id_is_reported_together_with_other_faults(project: Project) -> None:
    assert project.refusals(LISTED + "  threshold: 2\n" + LISTED) == [
        "4:14 wrong-value",
        "5:7 duplicate-id",
    ]


def test_the_same_id_in_two_files_is_fine(project: Project) -> None:
    project.write("one.yaml", LISTED)
    project.write("two.yaml", LISTED)
    assert [suite.cases[0].id for suite in assay.load(["one.yaml", "two.yaml"])] == ["a", "a"]


def test_a_case_needs_an_input(project: Project) -> None:
    place, message = project.refused("- id: a\n  expected_output: Hi\n")
    assert place == "1:3 missing-key"
    assert "'input_messages' (or 'input')" in message


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("null", "1:18 wrong-type"),
        ("5", "1:18 wrong-type"),
        ("{role: user, content: x}", "1:18 wrong-type"),
        ("[]", "1:18 wrong-value"),
        ("[hello]", "1:19 wrong-type"),
    ],
)
def test_an_input_is_text_or_messages(project: Project, value: str, place: str) -> None:
    found, message = project.refused(f"- {{id: a, input: {value}, expected_output: x}}\n")
    assert found == place
    assert "'input" in message


def test_a_case_asserts_something(project: Project) -> None:
    place, message = project.refused("- id: a\n  input: Hello\n")
    assert place == "1:3 asserts-nothing"
    assert "'a' has nothing that could fail" in message
    assert "expected_output" in message


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("expected_output: Hi", "equals"),
        ("expected_outcome: Is kind", "llm_judge"),
        ("rubrics: [Is kind]", "rubric"),
        ("evaluators: [{type: is_json}]", "is_json"),
        ("expect: {responseNonEmpty: true}", "expect"),
    ],
)
def test_each_of_these_can_fail(project: Project, line: str, kind: str) -> None:
    assert types(project.case(f"- id: a\n  input: Hello\n  {line}\n")) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "evaluators: []",
        "expect: {}",
        "expect: {noToolErrors: false}",
        "expect: {responseContains: [], toolsCalledMode: sequence}",
        "expected_output: null",
    ],
)
def test_these_cannot_fail(project: Project, line: str) -> None:
    (problem,) = project.problems(f"- id: a\n  input: Hello\n  {line}\n")
    assert problem.code == "asserts-nothing"
    assert 1 <= problem.line <= 3


def test_an_empty_list_of_evaluators_leaves_the_default(project: Project) -> None:
    text = "execution: {evaluators: [{type: is_json}]}\ncases:\n- id: a\n  input: x\n"
    case = project.case(text + "  evaluators: []\n  expected_outcome: Is kind\n")
    assert types(case) == ["llm_judge"]
    assert case.has_default_evaluators


def test_expected_messages_without_an_answer_get_their_own_message(project: Project) -> None:
    text = "- id: a\n  input: x\n  expected_output: [{role: user, content: y}]\n"
    _, message = project.refused(text)
    assert "its expected output has no message of the assistant" in message


def test_a_skipped_case_may_assert_nothing(project: Project) -> None:
    case = project.case("- id: a\n  input: Hello\n  skip: not yet\n")
    assert (case.skip, case.evaluators) == ("not yet", ())


def test_a_skipped_case_may_lack_an_input(project: Project) -> None:
    case = project.case("- id: a\n  skip: not yet\n")
    assert (case.skip, case.input_messages) == ("not yet", ())


# Evaluators: inheritance and defaults

SUITE = """
    execution:
      evaluators:
        - {type: is_json}
        - {type: latency, threshold: 100}
    cases:
      - id: a
        input: Hello
    """


def test_a_case_inherits_the_suites_evaluators(project: Project) -> None:
    case = project.case(SUITE)
    assert types(case) == ["is_json", "latency"]
    assert case.has_default_evaluators is False


@pytest.mark.parametrize("where", ["evaluators", "execution: {evaluators"])
def test_a_case_list_replaces_the_suites(project: Project, where: str) -> None:
    end = "}" if "{" in where else ""
    case = project.case(f"{SUITE}    {where}: [{{type: contains, value: x}}]{end}\n    ")
    assert types(case) == ["contains"]


def test_rubrics_and_expect_are_added_to_the_suites_list(project: Project) -> None:
    case = project.case(
        SUITE + "    rubrics: [Is kind]\n        expect: {responseNonEmpty: true}\n    "
    )
    assert types(case) == ["is_json", "latency", "rubric", "expect"]
    assert [spec.name for spec in case.evaluators] == ["is_json", "latency", "rubric", "expect"]
    assert case.evaluators[3].required is True


def test_rubrics_and_expect_are_added_to_the_cases_list(project: Project) -> None:
    case = project.case(
        """
        id: a
        input: Hello
        evaluators: [{type: rubric, rubrics: [Is short]}, {type: contains, value: x}]
        rubrics: [Is kind]
        expect: {responseNonEmpty: true}
        """
    )
    assert [spec.name for spec in case.evaluators] == ["rubric", "contains", "rubric_2", "expect"]


def test_expected_output_adds_nothing_to_named_evaluators(project: Project) -> None:
    case = project.case(f"{CASE}expected_outcome: x\nrubrics: [Is kind]\n")
    assert types(case) == ["rubric"]


def test_default_is_llm_judge_on_the_expected_outcome(project: Project) -> None:
    case = project.case(f"{CASE}expected_outcome: Is kind\n")
    assert types(case) == ["llm_judge"]
    assert case.evaluators[0].name == "llm_judge"
    assert case.has_default_evaluators is True


@pytest.mark.parametrize("output", ["Hi", "{a: 1}", "[1, 2]", "4", "false", "0", "''", "[]"])
def test_default_is_equality_with_the_expected_output(project: Project, output: str) -> None:
    case = project.case(f"id: a\ninput: Hello\nexpected_output: {output}\n")
    (spec,) = case.evaluators
    assert (spec.type, spec.name, spec.weight) == ("equals", "equals", 1)
    assert case.has_default_evaluators is True


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("expected_outcome: Is kind", ["llm_judge", "tool_trajectory"]),
        ("description: only tools", ["tool_trajectory"]),
    ],
)
def test_expected_tool_calls_add_a_trajectory(
    project: Project, line: str, expected: list[str]
) -> None:
    case = project.case(
        f"id: a\ninput: Hello\n{line}\n"
        "expected_output:\n"
        "  - {role: assistant, tool_calls: [{tool: s, input: {q: 1}}, {tool: t}]}\n"
        "  - {role: assistant, tool_calls: [{tool: s}]}\n"
    )
    assert types(case) == expected
    assert case.evaluators[-1].model_dump(exclude_unset=True) == {
        "type": "tool_trajectory",
        "mode": "in_order",
        "expected": [{"tool": "s", "args": {"q": 1}}, {"tool": "t"}, {"tool": "s"}],
    }
    assert case.evaluators[-1].model_dump()["expected"][0]["args_match"] == "superset"


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("{type: contans, value: x}", "4:12 unknown-evaluator"),
        ("{type: contains}", "4:5 missing-key"),
        ("{type: contains, value: 5}", "4:29 wrong-type"),
        ("{value: x}", "4:5 missing-key"),
        ("contains", "4:5 wrong-type"),
    ],
)
@pytest.mark.parametrize("rest", ["", "expected_output: Hi\n", "expected_outcome: x\n"])
def test_an_invalid_evaluator_is_never_replaced_by_a_default(
    project: Project, entry: str, place: str, rest: str
) -> None:
    assert project.refusals(with_evaluators(f"- {entry}\n") + rest) == [place]


def test_an_invalid_evaluator_is_never_dropped(project: Project) -> None:
    entries = "- {type: is_json}\n- {type: contans, value: x}\n- {type: is_json}\n"
    assert project.refusals(with_evaluators(entries)) == ["5:12 unknown-evaluator"]


def test_an_invalid_suite_evaluator_is_reported_once(project: Project) -> None:
    """The cases that inherit the list have no fault of their own."""
    text = """
        execution:
          evaluators:
            - {type: is_jsn}
        cases:
          - {id: a, input: Hello}
          - {id: b, input: Hello}
        """
    assert project.refusals(text) == ["3:14 unknown-evaluator"]


@pytest.mark.parametrize("kind", ["equals", "similarity"])
def test_an_evaluator_without_a_value_needs_an_expected_output(project: Project, kind: str) -> None:
    place, message = project.refused(with_evaluators(f"- {{type: is_json}}\n- {{type: {kind}}}\n"))
    assert place == "5:5 needs-expected"
    assert repr(kind) in message
    assert types(project.case(with_evaluators(f"- {{type: {kind}, value: x}}\n"))) == [kind]
    assert types(project.case(CASE + f"evaluators: [{{type: {kind}}}]\n")) == [kind]


def test_null_is_a_value_for_equals_but_not_for_similarity(project: Project) -> None:
    equals = project.case(with_evaluators("- {type: equals, value: null}\n"))
    assert types(equals) == ["equals"]
    place, _ = project.refused(with_evaluators("- {type: similarity, value: null}\n"))
    assert place.endswith(" needs-expected")


def test_an_inherited_evaluator_that_needs_an_expected_output_names_the_case(
    project: Project,
) -> None:
    text = """
        execution: {evaluators: [{type: equals}]}
        cases:
          - {id: first, input: Hello, expected_output: Hi}
          - {id: second, input: Hello}
        """
    (problem,) = project.problems(text)
    assert problem.code == "needs-expected"
    assert "'second'" in problem.message or problem.line == 4


# expect, in YAML


def test_expect_takes_camel_case_and_snake_case(project: Project) -> None:
    case = project.case(
        """
        id: a
        input: Hello
        expect:
          toolsCalled: [x]
          response_contains: [y]
          max_latency_ms: 100
        """
    )
    assert case.evaluators[0].model_dump(exclude_unset=True) == {
        "type": "expect",
        "toolsCalled": ["x"],
        "responseContains": ["y"],
        "maxLatencyMs": 100,
    }
    assert case.origin_of("expect.responseContains.0") == ("suite.yaml", 5, 23)


def test_expect_in_both_spellings_is_a_warning(project: Project) -> None:
    text = "id: a\ninput: Hello\nexpect: {tools_called: [x], toolsCalled: [y]}\n"
    suite = project.suite(text)
    assert suite.cases[0].evaluators[0].model_dump()["toolsCalled"] == ["y"]
    assert [project.place(warning) for warning in suite.warnings] == ["3:10 ignored-alias"]


@pytest.mark.parametrize(
    ("block", "place"),
    [
        ("{toolsCaled: [x]}", "3:10 unknown-key"),
        ("{tools_called: x}", "3:24 wrong-type"),
        ("{toolsCalled: [x], tools_acceptable: [[x]]}", "3:46 conflicting-keys"),
        ("{response_matches: ['(']}", "3:29 bad-regex"),
        ("{responseContains: ['{{sed:x}}']}", "3:29 bad-token"),
        ("{max_tokens: 0}", "3:22 wrong-value"),
    ],
)
def test_wrong_expect_blocks(project: Project, block: str, place: str) -> None:
    assert project.refusals(f"id: a\ninput: Hello\nexpect: {block}\n") == [place]


# Structured expected output


@pytest.mark.parametrize(
    ("written", "content"),
    [
        ("4", 4),
        ("0", 0),
        ("0.5", 0.5),
        ("true", True),
        ("false", False),
        ("[1, two, null]", [1, "two", None]),
        ("[{name: x}, {name: y}]", [{"name": "x"}, {"name": "y"}]),
        ("[]", []),
        ("{a: {b: [1]}}", {"a": {"b": [1]}}),
        ("text", "text"),
    ],
)
def test_structured_expected_output(project: Project, written: str, content: object) -> None:
    case = project.case(f"id: a\ninput: Hello\nexpected_output: {written}\n")
    assert messages(case.expected_messages) == [{"role": "assistant", "content": content}]
    assert (case.expected_output, type(case.expected_output)) == (content, type(content))


# Messages


def message_case(message: str) -> str:
    return f"id: a\nexpected_output: Hi\ninput:\n  - {message}\n"


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_roles(project: Project, role: str) -> None:
    case = project.case(message_case(f"{{role: {role}, content: x}}"))
    assert messages(case.input_messages) == [{"role": role, "content": "x"}]


@pytest.mark.parametrize(
    ("message", "place", "word"),
    [
        ("{role: bot, content: x}", "4:12 wrong-value", "system, user, assistant, tool"),
        ("{role: User, content: x}", "4:12 wrong-value", "'user'"),
        ("{role: 5, content: x}", "4:12 wrong-value", "is 5"),
        ("{role: [user], content: x}", "4:12 wrong-value", "is a list"),
        ("{role: {a: b}, content: x}", "4:12 wrong-value", "is a mapping"),
        ("{role: null, content: x}", "4:12 wrong-value", "is null"),
        ("{content: x}", "4:5 missing-key", "'role'"),
        ("{role: user}", "4:5 missing-key", "neither 'content' nor 'tool_calls'"),
        ("{role: user, content: null}", "4:5 missing-key", "neither"),
        ("{role: user, content: 5}", "4:27 wrong-type", "is 5"),
        ("{role: user, content: true}", "4:27 wrong-type", "is true"),
        ("{role: user, content: [5]}", "4:28 wrong-type", "content[0]"),
        ("{role: user, content: x, contnt: y}", "4:30 unknown-key", "'content'"),
        ("{role: user, content: [{type: image, value: x}]}", "4:35 wrong-value", "text, file"),
        ("{role: user, content: [{type: text}]}", "4:28 missing-key", "'value'"),
        ("{role: user, content: [{value: x}]}", "4:28 missing-key", "'type'"),
        ("{role: user, content: [{type: text, value: 5}]}", "4:48 wrong-type", "text"),
        (
            "{role: user, content: [{type: text, value: x, txt: y}]}",
            "4:51 unknown-key",
            "'txt'",
        ),
        ("{role: user, tool_calls: [{tool: t}]}", "4:30 wrong-value", "only assistants"),
        ("{role: assistant, tool_calls: [t]}", "4:36 wrong-type", "tool_calls[0]"),
        ("{role: assistant, tool_calls: {tool: t}}", "4:35 wrong-type", "list"),
        ("{role: assistant, tool_calls: [{input: 1}]}", "4:36 missing-key", "'tool'"),
        ("{role: assistant, tool_calls: [{tool: ''}]}", "4:43 wrong-value", "empty"),
        ("{role: assistant, tool_calls: [{tool: 5}]}", "4:43 wrong-type", "text"),
        (
            "{role: assistant, tool_calls: [{tool: t, duration_ms: -1}]}",
            "4:59 wrong-value",
            ">= 0",
        ),
        ("{role: assistant, tool_calls: [{tool: t, id: 5}]}", "4:50 wrong-type", "text"),
        ("hello", "4:5 wrong-type", "not a mapping"),
    ],
)
def test_wrong_messages(project: Project, message: str, place: str, word: str) -> None:
    found, text = project.refused(message_case(message))
    assert found == place
    assert word in text


def test_content_is_text_an_object_or_parts(project: Project) -> None:
    case = project.case(
        """
        id: a
        expected_output: Hi
        input:
          - {role: system, content: Be kind}
          - {role: user, content: {city: Paris, days: [1, 2]}}
          - role: user
            content:
              - bare text
              - {type: text, value: more text}
        """
    )
    assert messages(case.input_messages) == [
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": {"city": "Paris", "days": [1, 2]}},
        {
            "role": "user",
            "content": [
                {"type": "text", "value": "bare text"},
                {"type": "text", "value": "more text"},
            ],
        },
    ]
    assert case.question == '{"city": "Paris", "days": [1, 2]}\nbare text\nmore text'


def test_tool_calls_keep_every_key(project: Project) -> None:
    call = "{tool: t, input: [1, {a: null}], output: {b: 2}, id: c1, duration_ms: 12.5}"
    case = project.case(message_case(f"{{role: assistant, tool_calls: [{call}]}}"))
    assert messages(case.input_messages) == [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "tool": "t",
                    "input": [1, {"a": None}],
                    "output": {"b": 2},
                    "id": "c1",
                    "duration_ms": 12.5,
                }
            ],
        }
    ]


def test_all_wrong_messages_are_reported(project: Project) -> None:
    text = """
        id: a
        expected_output: Hi
        input:
          - {role: bot, content: x}
          - {role: user, content: x}
          - {role: user, content: [{type: x, value: y}, 5]}
        """
    assert project.refusals(text) == ["4:12 wrong-value", "6:35 wrong-value", "6:49 wrong-type"]


# Files


def with_file(value: str) -> str:
    """A case with a file part on line 7; its value is on line 8."""
    return (
        "id: a\nexpected_output: Hi\ninput:\n  - role: user\n    content:\n"
        f"      - text\n      - type: file\n        value: {value}\n"
    )


def path_of(case: assay.EvalCase) -> Path | None:
    part = case.input_messages[0].content[1]
    assert isinstance(part, ContentPart)
    assert part.type == "file"
    return part.path


@pytest.fixture
def fenced(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a file next to it: `../secret.md`."""
    project.write("secret.md", "secret")
    inner = type(project)(project.root / "fenced")
    inner.write("evals/doc.md")
    monkeypatch.chdir(inner.root)
    return inner


@pytest.mark.parametrize(
    ("present", "found"),
    [
        (["doc.md", "evals/doc.md", "evals/deep/doc.md"], "evals/deep/doc.md"),
        (["doc.md", "evals/doc.md"], "evals/doc.md"),
        (["doc.md"], "doc.md"),
    ],
)
def test_files_are_looked_for_from_the_eval_file_up_to_the_root(
    project: Project, present: list[str], found: str
) -> None:
    for name in present:
        project.write(name, name)
    case = project.case(with_file("doc.md"), "evals/deep/suite.yaml")
    assert path_of(case) == (project.root / found).resolve()
    assert messages(case.input_messages)[0]["content"][1] == {"type": "file", "value": "doc.md"}


def test_files_are_not_looked_for_above_the_root(fenced: Project) -> None:
    place, message = fenced.refused(with_file("secret.md"), "evals/suite.yaml")
    assert place == "8:16 file-not-found"
    assert "looked for evals/secret.md, secret.md)" in message


def test_a_leading_slash_means_the_project_root(project: Project) -> None:
    project.write("doc.md")
    project.write("evals/doc.md")
    case = project.case(with_file("/doc.md"), "evals/suite.yaml")
    assert path_of(case) == (project.root / "doc.md").resolve()


def test_a_leading_slash_is_not_the_machines_root(fenced: Project) -> None:
    place, message = fenced.refused(with_file(str(fenced.root.parent / "secret.md")))
    assert place == "8:16 file-not-found"
    assert "secret.md" in message


def test_a_missing_file_is_an_error(project: Project) -> None:
    place, message = project.refused(with_file("docs/gone.md"), "evals/suite.yaml")
    assert place == "8:16 file-not-found"
    assert "no file 'docs/gone.md'" in message
    assert "evals/docs/gone.md, docs/gone.md" in message


@pytest.mark.parametrize("value", ["evals", "''", "."])
def test_a_folder_is_not_a_file(project: Project, value: str) -> None:
    project.write("evals/doc.md")
    (problem,) = project.problems(with_file(value))
    assert problem.code in ("file-not-found", "not-a-file", "wrong-value")
    assert problem.line in (7, 8)


@pytest.mark.parametrize("value", ["../secret.md", "evals/../../secret.md", "/../secret.md"])
def test_a_path_that_leaves_the_root_is_refused(fenced: Project, value: str) -> None:
    place, message = fenced.refused(with_file(value))
    assert place == "8:16 outside-root"
    assert f"{value!r} is outside the project root" in message
    assert "allow_outside_root" in message


def test_a_path_may_go_up_inside_the_root(project: Project) -> None:
    file = project.write("docs/doc.md")
    case = project.case(with_file("../docs/doc.md"), "evals/suite.yaml")
    assert path_of(case) == file.resolve()


@pytest.mark.parametrize("suite", ["suite.yaml", "evals/suite.yaml"])
def test_a_symbolic_link_out_of_the_root_is_refused(fenced: Project, suite: str) -> None:
    (fenced.root / "link.md").symlink_to(fenced.root.parent / "secret.md")
    place, message = fenced.refused(with_file("link.md"), suite)
    assert place == "8:16 outside-root"
    assert "'link.md'" in message


def test_a_symbolic_link_inside_the_root_is_followed(project: Project) -> None:
    target = project.write("docs/doc.md")
    (project.root / "link.md").symlink_to(target)
    assert path_of(project.case(with_file("link.md"))) == target.resolve()


def test_the_config_may_allow_paths_outside_the_root(fenced: Project) -> None:
    fenced.write("assay.yaml", "allow_outside_root: true\n")
    case = fenced.case(with_file("../secret.md"))
    assert path_of(case) == (fenced.root.parent / "secret.md").resolve()


def test_the_config_may_forbid_paths_outside_the_root(fenced: Project) -> None:
    fenced.write("assay.yaml", "allow_outside_root: false\n")
    assert fenced.refused(with_file("../secret.md"))[0] == "8:16 outside-root"


# Places

PLACES = """
    description: Places
    execution:
      evaluators:
        - type: contains
          value: Hi
    tests:
      - id: a
        input:
          - role: user
            content: Hello
        outcome: Is kind
        metadata: {owner: me}
        tags:
          - one
          - two
      - id: b
        input: Hello
        expected_output: {a: [1, 2]}
        assert:
          - type: not-contains
            value: x
      - {id: c, input: Hello, execution: {assertions: [{type: is_json}]}}
    """


@pytest.mark.parametrize(
    ("case", "path", "line", "column"),
    [
        (0, "", 7, 5),
        (0, "id", 7, 9),
        (0, "input_messages", 9, 7),
        (0, "input", 9, 7),
        (0, "input_messages.0", 9, 9),
        (0, "input_messages.0.content", 10, 18),
        (0, "expected_outcome", 11, 14),
        (0, "outcome", 11, 14),
        (0, "metadata.owner", 12, 23),
        (0, "metadata.missing", 12, 15),
        (0, "tags.1", 15, 9),
        (0, "evaluators", 4, 5),
        (0, "evaluators.0", 4, 7),
        (0, "evaluators.0.value", 5, 14),
        (0, "expected_messages", 7, 5),
        (0, "threshold", 7, 5),
        (1, "", 16, 5),
        (1, "expected_messages", 18, 22),
        (1, "expected_output.a.1", 18, 30),
        (1, "evaluators.0", 20, 9),
        (1, "evaluators.0.type", 20, 15),
        (1, "evaluators.0.value", 21, 16),
        (1, "expected_outcome", 16, 5),
        (2, "", 22, 5),
        (2, "evaluators.0.type", 22, 59),
    ],
)
def test_positions_of_parts(project: Project, case: int, path: str, line: int, column: int) -> None:
    found = project.suite(PLACES).cases[case].origin_of(path.split(".") if path else ())
    assert found == ("suite.yaml", line, column)
    assert str(found) == f"suite.yaml:{line}:{column}"


def test_positions_by_text_and_by_steps(project: Project) -> None:
    case = project.suite(PLACES).cases[0]
    assert case.origin_of("evaluators.0.value") == case.origin_of(["evaluators", 0, "value"])
    assert case.origin == case.origin_of(())


def test_a_missing_part_has_the_position_of_its_nearest_parent(project: Project) -> None:
    case = project.case(
        """
        - id: a
          description: Greets
          input: Hello
          expected_output: Hi
        """
    )
    assert case.origin_of("threshold") == ("suite.yaml", 1, 3)
    assert case.origin_of("metadata.owner") == ("suite.yaml", 1, 3)
    assert case.origin_of("expected_outcome") == ("suite.yaml", 1, 3)


@pytest.mark.parametrize("text", [LISTED, f"cases:\n{LISTED}", CASE])
def test_a_default_evaluator_has_the_position_of_its_case(project: Project, text: str) -> None:
    case = project.case(text)
    assert case.origin_of("evaluators.0") == case.origin


def test_a_key_of_digits_has_a_position(project: Project) -> None:
    case = project.case(f"{CASE}metadata:\n  '2024': old\n  '2025': new\n")
    assert case.origin_of("metadata.2025") == ("suite.yaml", 6, 11)


@pytest.mark.parametrize(
    ("lines", "line", "column"),
    [
        ("expect:\n  responseContains: [a, '{{seed:x}}']\n", 4, 25),
        ("expect:\n  response_contains: [a, '{{seed:x}}']\n", 4, 26),
        ("expect:\n  responseContainsAny: [[a], [b, '{{seed:x}}']]\n", 4, 34),
        ("evaluators:\n  - type: is_json\nexpect: {responseNotContains: ['{{seed:x}}']}\n", 5, 32),
        ("evaluators:\n  - {type: expect, responseContains: ['{{seed:x}}']}\n", 4, 39),
    ],
)
def test_an_unresolved_seed_token_has_its_position(
    project: Project, lines: str, line: int, column: int
) -> None:
    (warning,) = project.suite(f"id: a\ninput: Hello\n{lines}").warnings
    assert project.place(warning) == f"{line}:{column} unresolved-seed"
    assert "{{seed:x}}" in warning.message


def test_a_fault_in_aliased_content_has_the_position_of_its_anchor(project: Project) -> None:
    text = """
        - id: a
          input: Hello
          expected_output: &bad [{role: bot, content: x}]
        - id: b
          input: Hello
          expected_output: *bad
        """
    assert project.refusals(text) == ["3:33 wrong-value"]  # once in the file, so reported once


def test_problems_are_in_file_order(project: Project) -> None:
    text = """
        description: 5
        tests:
          - id: a
            threshold: 7
            input: 5
            evaluators: [{type: nothing}]
            zzz: 1
          - input: Hello
        x: 1
        """
    assert project.refusals(text) == [
        "1:14 wrong-type",
        "4:16 wrong-value",
        "5:12 wrong-type",
        "6:25 unknown-evaluator",
        "7:5 unknown-key",
        "8:5 missing-key",
        "9:1 unknown-key",
    ]


def test_loading_leaves_the_verbs_callable(project: Project) -> None:
    project.suite(LISTED)
    assert [suite.name for suite in assay.load("suite.yaml")] == ["suite"]
    assert assay.validate("suite.yaml").problems == ()
    assert assay.lint("suite.yaml").errors == ()


def test_inline_rubrics_are_found_as_an_evaluator_too(project: Project) -> None:
    case = project.case("id: a\ninput: x\nrubrics:\n  - one\n  - two\n")
    assert case.origin_of("evaluators.0.rubrics.1") == case.origin_of("rubrics.1")
    assert case.origin_of("rubrics.1").line == 5


def test_repeated_keys_are_warned_about_each_time(project: Project) -> None:
    """What becomes of a list of keys is remembered only when there is nothing to say about it."""
    case = "- id: c{}\n  input: Hello\n  outcome: Is kind\n  criteria: Is rude\n"
    plain = "- id: c{}\n  input: Hello\n  outcome: Is kind\n"
    text = "".join((case if i % 2 else plain).format(i) for i in range(4))
    suite = project.suite(text)
    assert [case.expected_outcome for case in suite] == ["Is kind"] * 4
    assert project.warned(text) == ["7:3 ignored-alias", "14:3 ignored-alias"]
