"""How much `pip install assay-evals` installs."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

import assay

MAX_MB = 40


def closure(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """The distribution and all that it requires on this machine, by normalized name."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        entry = waiting.pop()
        if entry in found:
            continue
        found.add(entry)
        for line in distribution(entry[0]).requires or ():
            needed = Requirement(line)
            chosen = [{"extra": extra} for extra in (*entry[1], "")]
            if needed.marker is None or any(map(needed.marker.evaluate, chosen)):
                waiting.append((normalized(needed.name), frozenset(needed.extras)))
    return {name for name, _ in found}


def normalized(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def size(name: str) -> int:
    """The bytes of its files, without the bytecode that Python adds."""
    files = [Path(str(file.locate())) for file in distribution(name).files or ()]
    if name == "assay-evals":  # it may be installed as a link to its source
        files = [*Path(assay.__file__).parent.rglob("*")]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def test_an_installation_is_small() -> None:
    sizes = {name: size(name) / 1e6 for name in closure("assay-evals")}
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    listed = "\n".join(f"{megabytes:6.1f} MB  {name}" for name, megabytes in largest)
    print(f"{sum(sizes.values()):6.1f} MB in all\n{listed}")  # shown by pytest -s
    assert {"uvloop", "psycopg"}.isdisjoint(sizes)
    assert sum(sizes.values()) <= MAX_MB, listed
