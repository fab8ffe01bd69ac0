"""Staleness: did a tool change since the cases about it were written?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import ConfigError, ToolRegistryError, nearest
from assay.model.case import EvalSuite
from assay.model.run import SuiteMetadata
from assay.model.tool import ToolEntry
from assay.problems import Problem, Problems
from assay.settings import Settings
from assay.suites.discovery import cases_file
from assay.suites.sources import document_of
from assay.wire.document import Document
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import shown

HASH_LENGTH = 12
#: If the registry grew by more, there are tools to choose from that the cases do not consider.
MAX_GROWTH = 1.5
Metadata = Mapping[str, Any]
_MAJOR = re.compile(r"\s*[vV]?0*([0-9]+)")


class ToolRegistry(msgspec.Struct, frozen=True):
    """The current tools of the agent, by name."""

    tools: Mapping[str, ToolEntry]

    def __len__(self) -> int:
        return len(self.tools)


def short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


def description_hash(description: str) -> str:
    return short_hash(description.encode("utf-8", "surrogatepass"))


def file_hash(file: Path) -> str:
    """The short hash of a file, read in chunks; empty when it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:HASH_LENGTH]
    except OSError:
        return ""


def eval_file_hash(file: Path, settings: Settings) -> str:
    """The short hash of an eval file, and of the file of cases if it names one."""
    own, cases = file_hash(file), cases_file(file, settings.for_file(file))
    return own if cases is None else short_hash((own + file_hash(cases)).encode())


def load_registry(settings: Settings) -> ToolRegistry | None:
    """The registry that the setting `tools` names; None when it is not set."""
    source = settings.config.tools
    if source is None:
        return None
    document = document_of(source, settings, ToolRegistryError)
    tools: dict[str, ToolEntry] = {}
    problems = Problems(document.file, _read_tools(document, tools)).sorted()
    if problems and source.file is not None:
        raise ConfigError(problems)
    if problems:
        lines = "\n".join(f"  {problem.place}: {problem.message}" for problem in problems)
        raise ToolRegistryError(
            f"{source.label} did not return a valid registry of tools:\n{lines}"
        )
    return ToolRegistry(tools)


def _read_tools(document: Document, tools: dict[str, ToolEntry]) -> Iterator[Problem]:
    """Add the tools of the document to `tools`, and yield its problems."""
    if not isinstance(document.data, list):
        message = f"the registry is {shown(document.data)}, not a list of tools"
        yield document.problem((), "wrong-type", message)
        return
    context = ValidationContext()
    for index, raw in enumerate(document.data):
        tool, problems = check(ToolEntry, document, (index,), raw, context)
        yield from (problem for problem in problems if problem.severity == "error")
        if tool is None:
            continue
        if tool.name in tools:
            message = f"the tool {tool.name!r} is listed twice"
            yield document.problem((index, "name"), "wrong-value", message)
        tools[tool.name] = tool


def suite_metadata(
    suite: EvalSuite, registry: ToolRegistry | None, eval_hash: str = ""
) -> SuiteMetadata:
    """The current state of the tool of a suite; unknown values are empty, or 0."""
    tool = registry.tools.get(suite.tool_name) if registry is not None else None
    description = tool.description if tool is not None else None
    return SuiteMetadata(
        tool_version=(tool.version or "") if tool is not None else "",
        description_hash="" if description is None else description_hash(description),
        registry_size=len(registry) if registry is not None else 0,
        eval_file_hash=eval_hash,
    )


def warnings(suite: EvalSuite, registry: ToolRegistry | None) -> list[str]:
    """What changed since the cases were written, according to the metadata of their file."""
    if registry is None or suite.tier == "suite":
        return []
    return [*_tool_warnings(suite, registry), *_size_warnings(suite.metadata, registry)]


def _tool_warnings(suite: EvalSuite, registry: ToolRegistry) -> Iterator[str]:
    name, recorded = suite.tool_name, suite.metadata
    tool = registry.tools.get(name)
    if tool is None:
        # A rubric file may be about several tools, and is then named after none of them.
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
        yield from _description_warnings(name, recorded, tool.description)


def _description_warnings(name: str, recorded: Metadata, description: str) -> Iterator[str]:
    before = str(recorded.get("descriptionHash") or "").strip().lower()
    if not before and recorded.get("description"):
        before = description_hash(str(recorded["description"]))
    whole = hashlib.sha256(description.encode("utf-8", "surrogatepass")).hexdigest()
    # A file may record a longer prefix of the hash than we do.
    if before and not (len(before) >= HASH_LENGTH and whole.startswith(before)):
        yield (
            f"the description of {name!r} changed: its hash was {before!r}"
            f" and is {whole[:HASH_LENGTH]!r}"
        )


def _size_warnings(recorded: Metadata, registry: ToolRegistry) -> Iterator[str]:
    before = recorded.get("registrySize") or 0
    if before and len(registry) > MAX_GROWTH * before:
        yield f"the registry grew from {before} to {len(registry)} tools"


def _major(version: str) -> str:
    """The first number of a version; the whole text if it does not begin with one."""
    found = _MAJOR.match(version)
    return found[1] if found else version.strip()
