"""`assay runs merge`: the shards of a plan become the run that was made without shards."""

from __future__ import annotations

import json
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import StoreError
from assay.results.folder import write_files
from assay.service import merging
from e2e.projects import Agent, Project, ended, normal

REPLIES = st.sampled_from(
    [
        "yes",
        "no",
        {"error": "broken"},
        {"response": "yes", "costUsd": 0.5, "usage": {"inputTokens": 3}},
        {"response": "no", "toolCalls": [{"name": "look_up", "params": {"a": [1.5]}}]},
    ]
)
CASES = st.fixed_dictionaries(
    {"said": st.lists(REPLIES, min_size=1, max_size=3)},
    optional={
        "skip": st.just("not today"),
        "min_pass_rate": st.sampled_from([0.0, 0.5]),
        "repeat": st.integers(1, 3),
        "critical": st.just(True),
        "cluster": st.sampled_from(["x", "y"]),
    },
)
FILES = ("a.eval.yaml", "b.jsonl", "c.eval.yaml")
SUITES = st.lists(st.lists(CASES, min_size=1, max_size=5), min_size=1, max_size=3)


def write(project: Project, suites: list[list[dict[str, Any]]], **config: Any) -> None:
    """A project with these cases, whose target says for each what the case has under `said`."""
    replies: dict[str, Any] = {}
    for file, cases in zip(FILES, suites, strict=False):
        written = []
        for number, case in enumerate(cases):
            name = f"{file[0]}{number}"
            fields = dict(case)
            replies[name] = fields.pop("said", "yes")
            expect = {"response_contains": ["yes"]}
            written.append({"id": name, "input": name, "expect": expect} | fields)
        lines = "".join(json.dumps(case) + "\n" for case in written)
        project.write(f"evals/{file}", lines if file.endswith(".jsonl") else {"cases": written})
    target = {"name": "a", "provider": "scripted", "replies": replies}
    project.write("assay.yaml", {"targets": [target]} | config)


def run(project: Project, *arguments: str) -> str:
    """The id of a run of all cases, whatever its exit code."""
    done = project.call("run", "evals", "--json", *arguments, code=None)
    assert done.exit_code in (0, 1, 3, 5), done.output
    run_id: str = json.loads(done.stdout)["runId"]
    return run_id


def shards(project: Project, count: int, *arguments: str) -> list[str]:
    """The ids of the shards; each is also in a file, such as 1.json."""
    return [
        run(project, "--shard", f"{i}/{count}", "-o", f"{i}.json", *arguments)
        for i in range(1, count + 1)
    ]


def merge(project: Project, *references: str, code: int = 0) -> dict[str, Any]:
    done = project.call("runs", "merge", "--json", *references, code=code)
    merged: dict[str, Any] = json.loads(done.stdout)
    return merged


def files(count: int) -> list[str]:
    return [f"{i}.json" for i in range(1, count + 1)]


def without_origin(document: str) -> Any:
    """The document without the only thing that a merged run has and others have not."""
    parsed = json.loads(normal(document))
    for suite in parsed.get("suites", [parsed]):
        suite["environment"].pop("mergedFrom", None)
    return parsed


def shown(project: Project, run_id: str) -> Any:
    return without_origin(project.call("runs", "show", "--json", run_id).stdout)


def written(project: Project, run_id: str) -> dict[str, Any]:
    found = project.result_files(run_id).items()
    return {name: without_origin(text) for name, text in found}


def record(project: Project, run_id: str) -> dict[str, Any]:
    columns = ("status", "target", "plan", "options", "suites", "summary")
    query = f"SELECT {', '.join(columns)} FROM run WHERE id = '{run_id}'"
    return dict(zip(columns, map(normal, project.rows(query)[0]), strict=True))


def trials(project: Project, *run_ids: str) -> list[tuple[Any, ...]]:
    """All that is stored of the trials of some runs, but for the id of the run."""
    names = [row[1] for row in project.rows("PRAGMA table_info(trial)") if row[1] != "run_id"]
    columns, listed = ", ".join(names), ", ".join(f"'{run_id}'" for run_id in run_ids)
    where = f"run_id IN ({listed}) ORDER BY position, repeat"
    return project.rows(f"SELECT {columns} FROM trial WHERE {where}")


@given(SUITES, st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=max(6, settings().max_examples // 8))
def test_merged_shards_equal_the_run_without_shards(
    suites: list[list[dict[str, Any]]], count: int, repeat: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        write(project, suites)
        options = [] if repeat == 1 else ["--repeat", str(repeat)]
        whole, parts = run(project, *options), shards(project, count, *options)
        for references in (parts, files(count), [*reversed(parts[1:]), "1.json"]):
            merged = merge(project, *references)["runId"]
            assert trials(project, merged) == trials(project, *parts)
            assert record(project, merged) == record(project, whole)
            assert shown(project, merged) == shown(project, whole)
            assert written(project, merged) == written(project, whole)


def test_a_merged_run_has_a_new_id_and_the_times_of_its_shards(home: Project) -> None:
    write(home, [[{}, {"said": "no"}, {}]])
    parts = shards(home, 2)
    merged = merge(home, "1.json", parts[1])
    times = home.rows("SELECT started_at, finished_at FROM run WHERE plan LIKE '%shard%'")
    assert merged["runId"] not in parts
    assert merged["mergedFrom"] == parts
    assert (merged["startedAt"], merged["finishedAt"]) == (
        min(started for started, _ in times),
        max(finished for _, finished in times),
    )
    assert (merged["status"], merged["totalCases"], merged["passed"]) == ("finished", 3, 2)


def test_a_merged_run_is_not_in_the_group_of_a_shard(home: Project) -> None:
    write(home, [[{}, {}]])
    for shard in ("1/2", "2/2"):
        home.call("run", "evals", "--target", "a", "--target", "echo:", "--shard", shard, code=1)
    first, _, second, _ = (run_id for run_id, _ in home.runs())
    home.call("runs", "merge", first, second)
    groups = home.rows("SELECT group_id, count(*) FROM run GROUP BY group_id ORDER BY 2")
    assert [(group is None, runs) for group, runs in groups] == [(True, 1), (False, 2), (False, 2)]


def test_it_prints_the_counts_and_what_to_call_next(home: Project) -> None:
    write(home, [[{}, {"said": "no"}, {"skip": "later"}]])
    parts = shards(home, 2)
    lines = home.call("runs", "merge", *parts).output.splitlines()
    merged = max(run_id for run_id, _ in home.runs())
    assert lines == [
        f"merged 2 shards into {merged}: 1 passed, 1 failed, 1 skipped",
        f"next: assay baseline set main {merged}",
    ]
    home.call("baseline", "set", "main", merged)
    last = home.call("runs", "merge", *parts).output.splitlines()[-1]
    again = max(run_id for run_id, _ in home.runs())
    assert last == f"next: assay compare main {again}"
    home.call(*last.removeprefix("next: assay ").split())
    home.call("baseline", "set", "other", "latest")


def test_documents_are_merged_where_no_shard_was_run(home: Project, tmp_path: Path) -> None:
    write(home, [[{}, {"said": "no"}, {}]])
    shards(home, 3)
    there = Project(tmp_path / "there")
    for name in files(3):
        laid_out = json.dumps(json.loads((home.root / name).read_text()), indent=2)
        there.write(f"shards/{name}", laid_out)
    merge(there, *(f"shards/{name}" for name in files(3)))
    assert "1 case failed" in there.call("runs", "show").output
    observations = there.call("export", "latest", "--format", "observations").output
    assert [json.loads(line)["id"] for line in observations.splitlines()] == ["a0", "a1", "a2"]


def test_a_shard_may_be_a_file_of_any_name(home: Project) -> None:
    write(home, [[{}, {}]])
    shards(home, 1)
    (home.root / "1.json").rename(home.root / "first")
    assert merge(home, "first")["totalCases"] == 2


def test_shards_of_another_store_are_merged_there(home: Project) -> None:
    write(home, [[{}, {"said": "no"}]])
    store = ("--store", "sqlite:elsewhere.db")
    parts = shards(home, 2, *store)
    merged = merge(home, *parts, *store)
    (newest, *_) = json.loads(home.call("runs", "list", "--json", *store).stdout)
    assert newest | {"mergedFrom": parts} == merged
    assert not (home.root / ".assay" / "assay.db").exists()


def test_warnings_of_suites_that_only_some_shards_asked_are_kept(home: Project) -> None:
    write(home, [[{}]], tools="tools.json")
    home.write("tools.json", [])
    expect = {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True}
    golden = {"id": "gs-t-001", "description": "", "input": {"message": "a0"}, "expect": expect}
    home.write("evals/t.golden.json", [golden])
    whole, parts = run(home), shards(home, 3)
    merged = record(home, merge(home, *parts)["runId"])
    assert merged == record(home, whole)
    assert "the tool 't' is not in the registry" in merged["suites"]


def test_a_run_merged_from_documents_is_regraded_from_what_the_target_did(home: Project) -> None:
    called = {"response": "yes", "toolCalls": [{"name": "look_up", "params": {"a": 1}}]}
    step = {"tool": "look_up", "args": {"a": 1}}
    judged = {"evaluators": [{"type": "tool_trajectory", "mode": "exact", "expected": [step]}]}
    write(home, [[{"said": [called, "no"], **judged}, {"said": "no"}]])
    shards(home, 2, "--repeat", "2")
    merged = merge(home, *files(2))["runId"]
    home.call("regrade", merged, code=1)
    first, again = (trials(home, run_id) for run_id in (merged, home.runs()[-1][0]))
    assert len(first) == 4
    assert [trial[4:6] for trial in first] == [trial[4:6] for trial in again]


def test_a_limit_counts_in_each_shard(home: Project) -> None:
    write(home, [[{} for _ in range(9)]])
    whole, parts = run(home, "--limit", "4"), shards(home, 2, "--limit", "2")
    merged = merge(home, *parts)["runId"]
    assert record(home, merged) == record(home, whole)


def test_cases_with_targets_of_their_own_are_merged(home: Project) -> None:
    targets = [{"name": n, "provider": "scripted", "replies": ["yes"]} for n in ("a", "b")]
    write(home, [[{"execution": {"target": name}} for name in ("a", "b")]], targets=targets)
    whole, parts = run(home), shards(home, 2)
    assert record(home, merge(home, *parts)["runId"]) == record(home, whole)
    assert record(home, whole)["target"] == "a, b"


def test_the_judges_of_all_shards_are_known(home: Project) -> None:
    verdict = json.dumps({"score": 1.0, "hits": [], "misses": [], "reasoning": "good"})
    judge = {"name": "j", "provider": "scripted", "replies": [verdict]}
    judged = {"evaluators": [{"type": "llm_judge", "prompt": "Is it good?"}]}
    target = {"name": "a", "provider": "scripted", "replies": ["yes"]}
    write(home, [[{}, judged]], targets=[target, judge], judge="j")
    whole, parts = run(home, "--target", "a"), shards(home, 2, "--target", "a")
    merged = merge(home, *files(2))["runId"]
    statistics = [json.loads(record(home, r)["summary"])["statistics"] for r in (whole, merged)]
    assert statistics[0]["judges"]
    assert statistics[0] == statistics[1]
    assert parts


def test_repeated_questions_about_a_regression_are_merged(home: Project, agent: Agent) -> None:
    """A critical case that passed in the baseline is asked again; its shard has these trials."""
    write(
        home,
        [[{}, {"critical": True}, {}]],
        targets=[{"name": "live", "provider": "http", "url": f"{agent.url}/ask"}],
    )
    agent.reply = lambda body: {"response": "yes"}
    home.call("baseline", "set", "main", run(home))
    agent.reply = lambda body: {"response": "no"}
    parts = shards(home, 2, "--baseline", "main")
    for references in (parts, files(2)):
        merged = merge(home, *references)["runId"]
        assert trials(home, merged) == trials(home, *parts)
        case = shown(home, merged)["suites"][0]["cases"][1]
        assert [trial.get("confirms", False) for trial in case["details"]["trials"]][:2] == [
            False,
            True,
        ]
        assert "baseline" not in record(home, merged)["options"], "it was not compared"
    home.call("compare", "main", "latest", code=1)


# Mistakes


def refused(project: Project, *references: str) -> list[str]:
    """What is wrong, one line for each problem; nothing is written."""
    before = project.runs() if (project.root / ".assay").exists() else None
    done = project.call("runs", "merge", *references, code=2)
    head, *problems = done.output.splitlines()
    assert head == "assay: these are not the shards of one plan; nothing was merged:"
    assert before == (project.runs() if (project.root / ".assay").exists() else None)
    return [problem.removeprefix("  ") for problem in problems]


@pytest.fixture
def three(home: Project) -> list[str]:
    """The ids of three shards, which are also in 1.json to 3.json."""
    write(home, [[{}, {}, {}, {}], [{}]])
    return shards(home, 3)


def test_missing_and_repeated_shards_are_named_together(home: Project, three: list[str]) -> None:
    assert refused(home, "2.json", three[1]) == [
        f"shard 2/3 is given 2 times: 2.json, the run {three[1]}",
        "2 shards missing: 1/3, 3/3",
    ]
    assert refused(home, "1.json", "3.json") == ["1 shard missing: 2/3"]


def test_of_many_missing_shards_the_first_are_named(home: Project) -> None:
    write(home, [[{}]])
    run(home, "--shard", "1/100000", "-o", "1.json")
    (problem,) = refused(home, "1.json")
    assert problem.startswith("99,999 shards missing: 2/100000, 3/100000, ")
    assert problem.endswith("21/100000 and 99,979 more")


def test_shards_of_another_division_are_refused(home: Project, three: list[str]) -> None:
    other = run(home, "--shard", "2/4")
    assert refused(home, "1.json", other) == [
        f"the plan was divided differently: shard 1/3 (1.json), shard 2/4 (the run {other})"
    ]


def test_every_difference_of_the_plan_is_named(home: Project, three: list[str]) -> None:
    other = run(home, "--shard", "2/3", "--repeat", "2", "--filter", "a*")
    of_it = f"shard 2/3 (the run {other})"
    assert refused(home, "1.json", other, "3.json") == [
        f'filter is null in shard 1/3 (1.json), and ["a*"] in {of_it}',
        f"repeat is null in shard 1/3 (1.json), and 2 in {of_it}",
    ]


def test_another_target_is_refused(home: Project, three: list[str]) -> None:
    other = run(home, "--shard", "2/3", "--target", "echo:")
    assert refused(home, "1.json", other, "3.json") == [
        f'target is null in shard 1/3 (1.json), and "echo:" in shard 2/3 (the run {other})'
    ]
    write(home, [[{}, {}, {}, {}], [{}]], targets=[{"name": "b", "provider": "echo"}])
    other = run(home, "--shard", "2/3")
    assert refused(home, "1.json", other, "3.json") == [
        "different targets were asked: "
        f"'a' in shard 1/3 (1.json), 'b' in shard 2/3 (the run {other})"
    ]


def test_a_changed_eval_file_is_refused(home: Project, three: list[str]) -> None:
    write(home, [[{}, {}, {}, {}, {}], [{}]])
    other = run(home, "--shard", "2/3")
    (problem,) = refused(home, "1.json", other, "3.json")
    assert problem.startswith("evals/a.eval.yaml changed: its hash is ")
    assert problem.endswith(f" in shard 2/3 (the run {other})")


def test_an_added_eval_file_is_refused(home: Project, three: list[str]) -> None:
    write(home, [[{}, {}, {}, {}], [{}], [{}]])
    other = run(home, "--shard", "2/3")
    assert refused(home, "1.json", other, "3.json") == [
        f"evals/c.eval.yaml is only in shard 2/3 (the run {other})"
    ]


def test_an_unfinished_shard_is_refused(home: Project) -> None:
    write(home, [[{"said": "no"}, {}, {"said": "no"}, {}, {"said": "no"}]])
    parts = shards(home, 2, "--max-failures", "1", "--workers", "1")
    assert refused(home, *parts) == [
        f"shard 1/2 (the run {parts[0]}) is not finished: it is interrupted; "
        f"`assay run --resume {parts[0]}` finishes it"
    ]
    assert refused(home, *files(2))[0].startswith("shard 1/2 (1.json) is not finished")


def test_a_run_that_stopped_when_it_was_decided_is_refused(home: Project) -> None:
    write(home, [[{}, {}]])
    home.call("baseline", "set", "main", run(home))
    parts = shards(home, 2, "--baseline", "main", "--stop-when", "decided")
    problems = refused(home, *parts)
    assert len(problems) == 2
    assert "was run with --stop-when" in problems[0]


def test_what_is_not_a_shard_is_refused(home: Project, three: list[str]) -> None:
    whole = run(home, "-o", "whole.json", "-o", "lines.jsonl")
    home.write("other.json", {"results": [{"success": True}]})
    home.write("broken.json", '{"shard": {"run":')
    home.write("list.json", [1])
    (result,) = (home.root / ".assay" / "runs" / three[0]).glob("*b.jsonl.json")
    names = ("whole.json", "other.json", str(result), "broken.json", "list.json", "lines.jsonl")
    found = refused(home, whole, *names, "gone.json", "nobody", "1.json", "2.json", "3.json")
    expected = "the document of a shard, written by `assay run --shard i/n -o FILE.json`"
    assert [problem for problem in found if expected in problem] == [
        f"{name}: there is no 'shard': expected {expected}"
        for name in ("whole.json", "other.json", str(result.relative_to(home.root)))
    ]
    told = "\n".join(found)
    assert f"the run {whole}: it was not run with --shard" in told
    assert "broken.json:1:18: the JSON ends too early" in told
    assert "list.json:1: Expected `object`, got `array`" in told
    assert "gone.json: there is no such file" in told
    assert "the store has no run or baseline 'nobody'" in told


def test_mistakes_without_a_store_create_none(home: Project, three: list[str]) -> None:
    elsewhere = Project(home.root.parent / "elsewhere")
    elsewhere.write("1.json", (home.root / "1.json").read_text())
    assert refused(elsewhere, "1.json") == ["2 shards missing: 2/3, 3/3"]
    assert not (elsewhere.root / ".assay").exists()


def test_a_run_or_file_must_be_named(home: Project) -> None:
    assert "Missing argument 'RUN|FILE...'" in home.call("runs", "merge", code=2).output


# What others may have done to a file


def changed(project: Project, **facts: Any) -> None:
    """Change fields of the first trial in 1.json."""
    document = json.loads((project.root / "1.json").read_text())
    document["shard"]["trials"][0] |= facts
    project.write("1.json", document)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"position": -1}, "a number is not from 0 to"),
        ({"repeat": 2**60}, "a number is not from 0 to"),
        ({"position": 5 << 28}, "'evals/a.eval.yaml' is not suite 6 of the run"),
        ({"suite": "evals/b.jsonl"}, "'evals/b.jsonl' is not suite 1 of the run"),
        ({"result": {}}, "Object missing required field `id`"),
        ({"result": 5}, "Expected `object`, got `int`"),
        ({"observation": []}, "Expected `object`, got `array`"),
    ],
)
def test_a_broken_trial_is_refused(
    home: Project, three: list[str], facts: dict[str, Any], problem: str
) -> None:
    changed(home, **facts)
    (found,) = refused(home, *files(3))
    assert found.startswith("1.json: trial 1 of the shard: ")
    assert problem in found


def test_wrong_types_are_refused(home: Project, three: list[str]) -> None:
    changed(home, outcome="perfect")
    (found,) = refused(home, *files(3))
    assert "Invalid enum value 'perfect' - at `$.shard.trials[0].outcome`" in found


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("startedAt", "yesterday", "at `$.shard.run.startedAt`"),
        ("options", {"shard": "1/3", "workers": "many"}, "cannot read: 'workers'"),
        ("environment", {"judges": 5}, "1.json: the judges of the shard: "),
        ("plan", {"shard": "first"}, "1.json: it was not run with --shard"),
    ],
)
def test_a_broken_run_is_refused(
    home: Project, three: list[str], key: str, value: Any, problem: str
) -> None:
    document = json.loads((home.root / "1.json").read_text())
    document["shard"]["run"][key] = value
    home.write("1.json", document)
    assert problem in "\n".join(refused(home, *files(3)))


def test_a_case_that_is_missing_or_in_two_shards_is_refused(
    home: Project, three: list[str]
) -> None:
    changed(home, position=1)  # a case of the second shard
    before = home.runs()
    done = home.call("runs", "merge", *files(3), code=2)
    assert "the shards have 3 of 4 cases of evals/a.eval.yaml; nothing was merged" in done.output
    assert home.runs() == before


# Interruptions


@pytest.mark.parametrize("error", [StoreError("the disk is full"), KeyboardInterrupt()])
def test_an_error_leaves_nothing_behind(
    home: Project, three: list[str], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = home.root / ".assay" / "runs", home.runs()
    kept = sorted(folder.iterdir())

    def fail(*arguments: Any) -> Any:
        write_files(*arguments)
        raise error

    monkeypatch.setattr(merging, "write_files", fail)
    code = 130 if isinstance(error, KeyboardInterrupt) else 3
    home.call("runs", "merge", *three, code=code)
    assert home.runs() == before
    assert sorted(folder.iterdir()) == kept


KILLER = """\
import os, signal
from assay.service import merging
merging.write_files = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_merge_leaves_no_run_that_looks_finished(home: Project, three: list[str]) -> None:
    home.write("killer.py", KILLER)
    config = (home.root / "assay.yaml").read_text()
    home.write("assay.yaml", config + "plugins: [killer]\n")
    ended(home.start("runs", "merge", *three), -signal.SIGKILL)
    home.write("assay.yaml", config)
    killed, status = home.runs()[-1]
    assert killed not in three
    assert status == "running"
    latest = json.loads(home.call("runs", "show", "--json").stdout)["runId"]
    assert latest == three[-1]
    assert merge(home, *three)["totalCases"] == 5
    home.call("runs", "rm", killed)


def test_shards_of_other_revisions_are_noted(home: Project, three: list[str]) -> None:
    for name, revision in (("1.json", "abc"), ("2.json", "def")):
        document = json.loads((home.root / name).read_text())
        document["shard"]["run"]["environment"]["git"] = {"revision": revision, "dirty": False}
        home.write(name, document)
    note = "its shards were run at different git revisions: abc, def"
    assert f"note: {note}" in home.call("runs", "merge", *files(3)).output
    assert note in home.call("runs", "show").output
