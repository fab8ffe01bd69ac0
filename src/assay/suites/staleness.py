"""Staleness: does the tool that a tier file was written for still look the same?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from assay.documents.checking import check
from assay.documents.document import Document
from assay.errors import ConfigError, Problem, Problems, ToolRegistryError, nearest
from assay.model.case import Suite
from assay.model.reading import Reading
from assay.model.refusal import shown
from assay.model.tool import ToolEntry
from assay.settings import Settings
from assay.suites.sources import document_of

HASH_LENGTH = 12
#: A registry that grew by more than this factor offers choices that the cases do not know.
MOST_GROWTH = 1.5
_MAJOR = re.compile(r"\s*[vV]?0*([0-9]+)")


class ToolRegistry(msgspec.Struct, frozen=True):
    """The tools that the agent has now, by name."""

    tools: Mapping[str, ToolEntry]

    def __len__(self) -> int:
        return len(self.tools)


def short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


def description_hash(description: str) -> str:
    return short_hash(description.encode("utf-8", "surrogatepass"))


def file_hash(file: Path) -> str:
    """The short hash of a file's bytes, however large it is; empty when it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:HASH_LENGTH]
    except OSError:
        return ""


def load_registry(settings: Settings) -> ToolRegistry | None:
    """The registry that `tools` names, asked once; None when the project names none."""
    source = settings.config.tools
    if source is None:
        return None
    document = document_of(source, settings, ToolRegistryError)
    tools: dict[str, ToolEntry] = {}
    problems = Problems(document.file, _read(document, tools)).told()
    if problems and source.file is not None:
        raise ConfigError(problems)
    if problems:
        told = "\n".join(f"  {problem.place}: {problem.message}" for problem in problems)
        raise ToolRegistryError(f"{source.label} gave no registry of tools:\n{told}")
    return ToolRegistry(tools)


def _read(document: Document, tools: dict[str, ToolEntry]) -> Iterator[Problem]:
    """Fill in the tools; what is wrong with the list."""
    if not isinstance(document.data, list):
        message = f"the registry is {shown(document.data)}, not a list of tools"
        yield document.problem((), "wrong-type", message)
        return
    reading = Reading()
    for index, raw in enumerate(document.data):
        tool, problems = check(ToolEntry, document, (index,), raw, reading)
        yield from (problem for problem in problems if problem.severity == "error")
        if tool is None:
            continue
        if tool.name in tools:
            message = f"the tool {tool.name!r} is listed twice"
            yield document.problem((index, "name"), "wrong-value", message)
        tools[tool.name] = tool


def suite_metadata(
    suite: Suite, registry: ToolRegistry | None, known_hash: str | None = None
) -> dict[str, Any]:
    """What the tool of a suite is like now; what is not known is empty, or 0."""
    if known_hash is None:
        known_hash = file_hash(Path(suite.file)) if suite.file else ""
    tool = registry.tools.get(suite.tool_name) if registry is not None else None
    description = tool.description if tool is not None else None
    return {
        "toolVersion": (tool.version or "") if tool is not None else "",
        "descriptionHash": "" if description is None else description_hash(description),
        "registrySize": len(registry) if registry is not None else 0,
        "evalFileHash": known_hash,
    }


def warnings(suite: Suite, registry: ToolRegistry | None) -> list[str]:
    """What changed since the cases were written, as far as their file recorded it."""
    if registry is None or suite.tier == "suite":
        return []
    return [*_of_tool(suite, registry), *_of_size(suite.metadata, registry)]


def _of_tool(suite: Suite, registry: ToolRegistry) -> Iterator[str]:
    name, recorded = suite.tool_name, suite.metadata
    tool = registry.tools.get(name)
    if tool is None:
        # A rubric file may be about several tools; then its name is that of none.
        if suite.tier != "rubric" or recorded.get("toolName"):
            hint = nearest(name, registry.tools)
            yield f"the tool {name!r} is not in the registry" + (f" ({hint})" if hint else "")
        return
    if tool.deprecated:
        yield f"the tool {name!r} is deprecated"
    before, now = str(recorded.get("toolVersion") or ""), tool.version or ""
    if before and now and _major(before) != _major(now):
        yield f"the major version of {name!r} changed from {before!r} to {now!r}"
    if tool.description is not None:
        yield from _of_description(name, recorded, tool.description)


def _of_description(name: str, recorded: Mapping[str, Any], description: str) -> Iterator[str]:
    before = str(recorded.get("descriptionHash") or "").strip().lower()
    if not before and recorded.get("description"):
        before = description_hash(str(recorded["description"]))
    whole = hashlib.sha256(description.encode("utf-8", "surrogatepass")).hexdigest()
    # Some write down more of the hash than is needed.
    if before and not (len(before) >= HASH_LENGTH and whole.startswith(before)):
        yield (
            f"the description of {name!r} changed: its hash was {before!r}"
            f" and is {whole[:HASH_LENGTH]!r}"
        )


def _of_size(recorded: Mapping[str, Any], registry: ToolRegistry) -> Iterator[str]:
    before = recorded.get("registrySize") or 0
    if before and len(registry) > MOST_GROWTH * before:
        yield f"the registry grew from {before} to {len(registry)} tools"


def _major(version: str) -> str:
    """The first number of a version; the whole text when it begins with none."""
    found = _MAJOR.match(version)
    return found[1] if found else version.strip()
