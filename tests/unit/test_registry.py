"""Names to objects: found lazily, near misses named, broken plugins explained."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from assay import ports, registry
from assay.errors import PluginError, UnknownName
from assay.evaluators.text import ContainsEvaluator
from assay.model.evaluator import EvaluatorSpec
from assay.model.target import TargetSpec
from assay.service import eval_files


def filled(**values: list[str]) -> registry.Registry[Any]:
    made: registry.Registry[Any] = registry.Registry("test.group", "evaluator")
    made.__dict__["_entries"] = {
        name: [EntryPoint(name, value, "test.group") for value in found]
        for name, found in values.items()
    }
    return made


def test_built_ins_come_through_entry_points() -> None:
    assert registry.evaluators.get("contains") is ContainsEvaluator
    assert "golden.json" in registry.loaders


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        registry.evaluators.get("tool_trajectry")
    assert caught.value.hint == "did you mean 'tool_trajectory'?"
    assert caught.value.exit_code == 2


def test_an_unknown_name_that_is_near_none_offers_them_all_if_they_are_few() -> None:
    with pytest.raises(UnknownName) as caught:
        registry.executors.get("xyz")
    assert caught.value.hint == f"known: {', '.join(sorted(registry.executors))}"
    with pytest.raises(UnknownName) as caught:
        registry.evaluators.get("xyz")
    assert caught.value.hint == ""


def test_plugins_are_imported_on_first_use() -> None:
    made = filled(lazy=["no_such_module_of_anyone:thing"])
    assert list(made) == ["lazy"]
    assert "no_such_module_of_anyone" not in sys.modules


def test_a_broken_plugin_names_its_cause() -> None:
    with pytest.raises(PluginError, match=r"'lazy' of no_such.* ModuleNotFoundError"):
        filled(lazy=["no_such_module_of_anyone:thing"]).get("lazy")


@pytest.mark.parametrize("error", ["RuntimeError('boom')", "SystemExit('boom')"])
def test_a_plugin_that_crashes_on_import_is_a_plugin_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    (tmp_path / "assay_crashing_plugin.py").write_text(f"raise {error}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match=r"(RuntimeError|SystemExit): boom"):
        filled(crash=["assay_crashing_plugin:thing"]).get("crash")


def test_usable_leaves_out_broken_plugins() -> None:
    made = filled(good=["json:dumps"], broken=["no_such_module_of_anyone:thing"])
    assert made.usable() == {"good": json.dumps}


def test_two_plugins_with_one_name_are_both_named() -> None:
    with pytest.raises(PluginError, match="json:dumps and json:loads"):
        filled(twin=["json:loads", "json:dumps"]).get("twin")


def test_entry_points_of_evaluators_may_have_kebab_case(monkeypatch: pytest.MonkeyPatch) -> None:
    check = EntryPoint("my-check", "assay.evaluators.text:ContainsEvaluator", "g")
    other = EntryPoint("not-mine", "json:dumps", "other")
    monkeypatch.setattr("assay.registry._installed", lambda: EntryPoints((check, other)))
    made = type(registry.evaluators)("g", "evaluator")
    assert made.get("my_check") is ContainsEvaluator
    suffixes: registry.Registry[Any] = registry.Registry("g", "loader")
    assert list(suffixes) == ["my-check"]


def test_a_broken_evaluator_is_an_error_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.eval.yaml").write_text("- id: a\n  input: x\n  evaluators:\n    - type: broken\n")
    broken = filled(broken=["no_such_module_of_anyone:thing"])
    monkeypatch.setattr("assay.loaders.effective.registered", broken)
    (problem,) = eval_files.validate("a.eval.yaml").problems
    assert (problem.code, problem.line, problem.column) == ("plugin-failed", 4, 13)
    assert "ModuleNotFoundError" in problem.message


# Objects of the wrong kind


class Mute(EvaluatorSpec):
    """Has keys and no judgement."""


class Unconnected(TargetSpec):
    """Has settings and no `connect`."""


class Reader:
    """A loader and a reporter, once it is instantiated."""

    def load(self, file: Path, settings: Any) -> None: ...

    def recognises(self, file: Path) -> None: ...

    @staticmethod
    def write(run: Any, out: Any) -> None: ...


class Evasive(type):
    """The class of a class that cannot be looked at."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(f"hands off {name}")


class Shy(metaclass=Evasive):
    """A plugin that breaks when it is looked at."""


READER, NUMBER = Reader(), 5
KINDS = ["loaders", "evaluators", "targets", "stores", "executors", "reporters"]
HERE = __name__


def strange(known: registry.Registry[Any], value: str) -> registry.Registry[Any]:
    """A registry of a kind that has one entry, of a stranger."""
    made = type(known)(known.group, known.kind, known._find_fault)
    entry = EntryPoint("odd", value if ":" in value else f"{HERE}:{value}", known.group)
    made.__dict__["_entries"] = {"odd": [entry]}
    return made


NO_EVALUATOR = "neither a subclass of EvaluatorSpec nor a function with @assay.evaluator"


@pytest.mark.parametrize(
    ("known", "value", "fault"),
    [
        (registry.evaluators, "Reader", f"is the class Reader, {NO_EVALUATOR}"),
        (registry.evaluators, "NUMBER", f"is an object of type int, {NO_EVALUATOR}"),
        (registry.evaluators, "Mute", "is the class Mute, which has neither 'evaluate' nor"),
        (registry.targets, "Reader", "is the class Reader, not a subclass of TargetSpec"),
        (registry.targets, "json:dumps", "is the function dumps, not a subclass of TargetSpec"),
        (registry.targets, "Unconnected", "is the class Unconnected, which has no 'connect'"),
        (registry.loaders, "NUMBER", "which has no function 'load' and 'recognises'"),
        (registry.loaders, "json:decoder", "is the module json.decoder, which has no function"),
        (registry.loaders, "Reader", "is the class Reader, not an instance of it"),
        (registry.loaders, "Shy", "failed to load: RuntimeError: hands off load"),
        (registry.reporters, "json:decoder", "which has no function 'write'"),
        (registry.stores, "NUMBER", "is an object of type int, not a function that opens a store"),
        (registry.executors, "READER", "is an object of type Reader, not a class with 'run'"),
        (registry.executors, "Reader", "is the class Reader, not a class with 'run'"),
    ],
)
def test_an_object_of_the_wrong_kind_is_a_plugin_error(
    known: registry.Registry[Any], value: str, fault: str
) -> None:
    made = strange(known, value)
    with pytest.raises(PluginError) as caught:
        made.get("odd")
    assert f"the {known.kind} 'odd' of " in str(caught.value)
    assert fault in str(caught.value)
    assert caught.value.exit_code == 3
    assert made.usable() == {}
    assert [entry.fault for entry in made.listed()] == [str(caught.value)]


def test_objects_and_static_methods_are_accepted() -> None:
    assert strange(registry.loaders, "READER").get("odd") is READER
    assert strange(registry.reporters, "Reader").get("odd") is Reader
    assert strange(registry.stores, "Reader").get("odd") is Reader


@pytest.mark.parametrize(
    ("known", "port"),
    [(registry.loaders, ports.Loader), (registry.reporters, ports.Reporter)],
)
def test_required_functions_match_the_ports(known: registry.Registry[Any], port: type) -> None:
    with pytest.raises(PluginError) as caught:
        strange(known, "NUMBER").get("odd")
    said = set(re.findall(r"'(\w+)'", str(caught.value))) - {"odd"}
    assert said == {name for name in vars(port) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_built_in_object_is_valid(kind: str) -> None:
    known: registry.Registry[Any] = getattr(registry, kind)
    assert [entry for entry in known.listed() if entry.fault] == []


# Metadata of packages


def package(folder: Path, name: str, entry: bytes, metadata: str | None = None) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_bytes(b"[assay.reporters]\n" + entry + b"\n")
    if metadata is not None:
        (info / "METADATA").write_text(metadata)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages; they are looked for anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_installed", registry._installed.__wrapped__)
    return tmp_path


def reporters_now() -> dict[str, str]:
    made: registry.Registry[Any] = registry.Registry("assay.reporters", "reporter")
    return {entry.name: entry.source for entry in made.listed()}


@pytest.mark.parametrize("metadata", [None, "", "Version: 1.0\n"])
def test_a_package_without_a_name_is_named_by_its_entry_point(
    site: Path, metadata: str | None
) -> None:
    package(site, "leftover", b"rest = json:dumps", metadata)
    assert reporters_now()["rest"] == "json:dumps"


@pytest.mark.parametrize("broken", [b"n\xe4me = json:dumps", b"a line that is no entry"])
def test_a_package_whose_entry_points_cannot_be_read_is_left_out(site: Path, broken: bytes) -> None:
    package(site, "broken", broken, "Name: broken\n")
    package(site, "nameless", b"more = json:loads")
    package(site, "good", b"rest = json:dumps", "Name: good.package\n")
    (site / "later").mkdir()
    package(site / "later", "good", b"rest = json:load", "Name: Good_Package\n")
    sys.path.insert(1, str(site / "later"))
    found = reporters_now()
    assert (found["rest"], found["more"]) == ("good.package", "json:loads")
    assert found["text"] == "assay-evals"


def test_all_packages_are_looked_at_in_one_go_when_they_can_be(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> None:
        raise AssertionError("one by one takes longer")

    monkeypatch.setattr(registry, "distributions", slow)
    package(site, "good", b"rest = json:dumps", "Name: good\n")
    assert reporters_now()["rest"] == "good"
