"""Both stores of the house hold what the port promises, and are registered by their scheme."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from assay.errors import StoreError
from assay.ports import Store, StoreOpener
from assay.stores.memory import MemoryStore, open_store
from assay.stores.migrating import scripts
from assay.stores.sqlite import SqliteStore
from assay.testing.stores import StoreConformance, make_run
from assay.testing.test_cases import TestCaseConformance

ROOT = Path(__file__).resolve().parents[2]


class TestMemoryStore(StoreConformance):
    def make_store(self, folder: Path) -> Store:
        return MemoryStore()


class TestSqliteStore(StoreConformance):
    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "store.db")


class TestMemoryTestCases(TestCaseConformance):
    def make_store(self, folder: Path) -> Store:
        return MemoryStore()


class TestSqliteTestCases(TestCaseConformance):
    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "store.db")


def openers() -> dict[str, StoreOpener]:
    """Those that pyproject.toml registers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entries = project["entry-points"]["assay.stores"]
    parts = {scheme: entry.split(":") for scheme, entry in entries.items()}
    return {s: getattr(import_module(module), name) for s, (module, name) in parts.items()}


@pytest.mark.parametrize("url", ["memory:", "sqlite:.assay/store.db"])
def test_every_store_is_registered_by_the_scheme_of_its_url(url: str, tmp_path: Path) -> None:
    store = openers()[url.partition(":")[0]](url, tmp_path)
    store.begin(make_run())
    assert store.run("run-1") == make_run()
    store.close()


def test_a_path_is_relative_to_the_root_unless_it_is_absolute(tmp_path: Path) -> None:
    opener = openers()["sqlite"]
    opener("sqlite:a/store.db", tmp_path).close()
    opener(f"sqlite:{tmp_path}/b/store.db", Path("elsewhere")).close()
    opener(f"sqlite://{tmp_path}/c/store.db", Path("elsewhere")).close()
    assert sorted(file.parent.name for file in tmp_path.rglob("store.db")) == ["a", "b", "c"]


@pytest.mark.parametrize("url", ["sqlite:", "sqlite", "postgresql://host/db"])
def test_a_url_without_a_file_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not the URL of a SQLite store"):
        openers()["sqlite"](url, tmp_path)


def test_every_memory_store_is_empty() -> None:
    open_store("memory:").begin(make_run())
    assert open_store("memory:").runs(1) == []


def test_the_package_carries_the_scripts_that_make_the_schema() -> None:
    files = {f.distribution_path for f in WheelBuilder(str(ROOT)).recurse_included_files()}
    made = [f for f in files if f.startswith("assay/stores/migrations/") and f.endswith(".sql")]
    assert len(made) == len(scripts("sqlite")) + len(scripts("postgres"))
