"""The layers: which package may import which, and what importing costs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import assay

SOURCE = Path(assay.__file__).parent

#: Packages and modules below `assay`, by layer. A package imports only from layers
#: below its own, and within an ordered layer from those that stand before it.
LAYERS: list[list[str]] = [
    [
        "version",
        "text",
        "record",
        "caching",
        "quick_search",
        "secret_encodings",
        "redaction",
        "problems",
        "errors",
        "deadlines",
        "patterns",
        "threads",
        "blocking",
        "atomic_files",
        "stats",
        "wire",
        "model",
    ],
    [
        "observations",
        "process",
        "settings",
        "seed_manifest",
        "store_parts",
        "ports",
        "scoring",
        "registry",
        "work_orders",
        "charts",
        "web",
    ],
    ["loaders", "evaluators", "targets", "executors", "stores", "reporters"],
    ["suites", "targets.pool", "engine", "results", "comparison"],
    ["service"],
    ["testing", "server", "cli", "pytest_plugin", "", "__main__"],
]
#: Layers whose members import those that stand before them; of the others they never do.
ORDERED = {0, 1, 3, 5}
#: Layers that have packages only: the phases of a case's way, and the verbs.
PACKAGES_ONLY = {2, 3, 4}


@cache
def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def dotted(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package(module: str) -> str:
    """`loaders` for assay.loaders.yaml, `targets.pool` for its modules; empty for the facade."""
    steps = module.split(".")[1:]
    inner = ".".join(steps[:2])
    return inner if any(inner in layer for layer in LAYERS) else "".join(steps[:1])


@cache
def known() -> set[str]:
    return {dotted(file) for file in modules()}


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def named(node: ast.AST, file: Path) -> list[str]:
    """The modules of ours that a node imports."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{file}:{node.lineno}: relative import"
        names = [
            full if (full := f"{node.module}.{alias.name}") in known() else str(node.module)
            for alias in node.names
        ]
    return [name for name in names if name.split(".")[0] == "assay"]


@cache
def imports(file: Path) -> list[tuple[int, str]]:
    """Every import of ours in a file, those in functions and under TYPE_CHECKING included."""
    return [
        (node.lineno, name)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in named(node, file)
    ]


def place(name: str) -> tuple[int, int]:
    for layer, packages in enumerate(LAYERS):
        if name in packages:
            return layer, packages.index(name)
    raise AssertionError(f"{name!r} has no layer")


def upwards(file: Path) -> Iterator[str]:
    """The imports of a module that do not point downwards."""
    own = package(dotted(file))
    for line, name in imports(file):
        other = package(name)
        if other == own:
            continue
        (layer, order), (below, below_order) = place(own), place(other)
        if below > layer:
            yield f"{file}:{line}: {own} imports {other}, which is above it"
        elif below == layer and layer not in ORDERED:
            yield f"{file}:{line}: siblings {own} and {other}"
        elif below == layer and below_order >= order:
            yield f"{file}:{line}: {other} comes after {own}"


def test_imports_point_downwards() -> None:
    assert [fault for file in modules() for fault in upwards(file)] == []


def test_no_import_cycles() -> None:
    graph = {dotted(f): {name for _, name in imports(f)} - {dotted(f)} for f in modules()}
    done: set[str] = set()
    while len(done) < len(graph):
        free = {m for m, needs in graph.items() if m not in done and needs <= done}
        assert free, f"a cycle among {sorted(set(graph) - done)}"
        done |= free


def test_phases_are_packages() -> None:
    for layer in PACKAGES_ONLY:
        for name in LAYERS[layer]:
            assert (SOURCE / name.replace(".", "/")).is_dir(), f"{name} is a lone module"


def test_the_engine_reaches_implementations_only_by_name() -> None:
    for file in modules():
        layer, _ = place(package(dotted(file)))
        if layer in (3, 4):
            used = {package(name) for _, name in imports(file)}
            assert not used & set(LAYERS[2]), f"{file} imports an implementation"


def test_package_inits_are_empty() -> None:
    inits = [file for file in modules() if file.name == "__init__.py" and file.parent != SOURCE]
    assert inits
    assert [file for file in inits if file.read_text(encoding="utf-8")] == []


def test_records_are_structs() -> None:
    """A dataclass takes thirty times as long to define, whenever a command starts."""
    used = re.compile(r"^\s*(import|from) dataclasses\b", re.MULTILINE)
    assert [file for file in modules() if used.search(file.read_text("utf-8"))] == []


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


#: What every import of ours begins with.
FACADE = {"assay", "assay.version"}


def first_needs(file: Path) -> set[str]:
    """The modules of ours that a module imports when it is imported itself."""
    found: set[str] = set()
    todo: list[ast.AST] = list(parsed(file).body)
    for node in todo:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found.update(named(node, file))
            todo += ast.iter_child_nodes(node)
    return found


def all_needs() -> dict[str, list[str]]:
    """For every module all modules of ours that are imported before it is."""
    direct = {dotted(file): first_needs(file) for file in modules()}
    for module, needs in direct.items():
        needs.update(name for name in known() if module.startswith(f"{name}."))
        needs -= FACADE

    @cache
    def with_all(module: str) -> frozenset[str]:
        return frozenset({module}).union(*map(with_all, direct[module]))

    return {module: sorted(with_all(module) - {module}) for module in known() - FACADE}


#: Imports every module after all that it needs, from an interpreter that has what others wrote and
#: none of ours. It forks for those that do not need the next one, which most of the others need, so
#: that each is imported in a process that has nothing else.
EACH_ALONE = """
import gc, json, os, sys
from collections import Counter
gc.disable()
import aiohttp, click, fastapi, msgspec, pydantic, yaml

def go(left, loaded=frozenset()):
    wanted = Counter(name for module in left for name in needs[module] | {module})
    wanted -= Counter(dict.fromkeys(loaded, len(left)))
    while left:
        ready = (name for name in wanted if needs[name] <= loaded)
        name = max(ready, key=lambda name: (wanted[name], name))
        others = {module for module in left if module != name and name not in needs[module]}
        if others:
            apart(others, loaded)
            wanted -= Counter(n for module in others for n in needs[module] | {module})
        __import__(name)
        loaded |= {name}
        del wanted[name]
        if name in left:
            print(name)
        left = left - others - {name}

def apart(left, loaded):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            go(left, loaded)
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        sys.stdout.flush()
        os._exit(1)

needs = {module: frozenset(names) for module, names in json.load(sys.stdin).items()}
import assay
print(*(name for name in sys.modules if name.split(".")[0] == "assay"))
go(frozenset(needs))
"""


def test_every_module_imports_alone() -> None:
    """There are no cycles, so that only what a module needs decides whether it can be imported."""
    command = [sys.executable, "-W", "error", "-c", EACH_ALONE]
    text = json.dumps(all_needs())
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(known())
    assert set(done.stdout.splitlines()[0].split()) == FACADE


HEAVY = (
    "pydantic",
    "yaml",
    "re2",
    "regex",
    "rich",
    "json.decoder",
    "importlib.metadata",
    "asyncio",
    "fastapi",
    "starlette",
    "uvicorn",
    "jinja2",
)


def loaded(code: str) -> set[str]:
    return set(run(f"import sys\n{code}\nprint(*sys.modules)").split())


def test_importing_the_facade_loads_nothing_heavy() -> None:
    assert not loaded("import assay").intersection((*HEAVY, "click"))


def test_templates_are_loaded_only_when_html_is_made() -> None:
    users = {package(dotted(file)) for file in modules() if "jinja2" in file.read_text("utf-8")}
    assert users == {"web"}
    assert "jinja2" not in loaded("import assay.web.environment")


def test_help_loads_nothing_heavy() -> None:
    code = "from click.testing import CliRunner\nfrom assay.cli.app import app\n"
    code += "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    bare = loaded("from click.testing import CliRunner")
    assert not (loaded(code) - bare).intersection(HEAVY)


def test_version_is_answered_before_click_is_imported() -> None:
    code = "sys.argv = ['assay', '--version']\nfrom assay.cli.main import main\nmain()"
    assert "click" not in loaded(code)


def test_the_facade_is_a_sorted_list_of_names_that_exist() -> None:
    assert assay.__all__ == sorted(assay.__all__)
    for name in assay.__all__:
        assert getattr(assay, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        assay.no_such_name  # type: ignore[attr-defined]  # noqa: B018
