"""Writes docs/api.md: every public name with its signature and its docstring."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import assay

FILE = Path(__file__).resolve().parents[2] / "docs/api.md"
HEAD = """# Python API

Every public name of `assay`, with its signature and docstring. `make docs` writes this page.
[Python](python.md) explains how the names are used together.
"""
KEYWORD_ONLY, VAR_POSITIONAL = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL
#: The annotation of a parameter or a result; a default keeps its quotes.
_QUOTED = re.compile(r"""(: |-> )(?:'([^']*)'|"([^"]*)")""")
#: A longer signature has a line for each parameter.
WIDTH = 90
#: Text between backticks, quotes and tags stays as it is; a page must not take `[x]` for a link.
_LINK = re.compile(r"\[([^\]]*)\]\(")


def signature_of(name: str, member: Any) -> str:
    """The signature, without the modules of annotations; of a class only the names."""
    try:
        if hasattr(member, "model_rebuild"):  # pydantic finishes a class when it is first used
            member.model_rebuild()
        found = inspect.signature(member)
    except (TypeError, ValueError):
        return name
    if inspect.isclass(member):  # the types of its fields are in the table of its page
        given = (p.name if p.default is p.empty else f"{p.name}=..." for p in parameters_of(found))
        return textwrap.fill(f"{name}({', '.join(given)})", WIDTH, subsequent_indent="    ")
    # A set has no order, and objects show where they are in memory.
    text = name + _short(str(found))
    if len(text) <= WIDTH:
        return text
    lines = [f"    {_short(str(parameter))}," for parameter in found.parameters.values()]
    kinds = [parameter.kind for parameter in found.parameters.values()]
    if KEYWORD_ONLY in kinds and VAR_POSITIONAL not in kinds:
        lines.insert(kinds.index(KEYWORD_ONLY), "    *,")
    returns = _short(str(found)).rpartition(") -> ")[2]
    return "\n".join([f"{name}(", *lines, f") -> {returns}"])


def _short(text: str) -> str:
    """A signature or a part of it, without quotes and the modules of types."""
    text = re.sub(r"frozenset\(\{.*?\}\)|<[^<>]*>", "...", text)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)
    return _QUOTED.sub(r"\1\2\3", text)


def parameters_of(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]


def methods_of(cls: type) -> list[tuple[str, Any]]:
    """The public methods and properties that the class itself or a base of ours documents."""
    members = inspect.getmembers_static(cls)
    return [
        (name, member)
        for name, member in members
        if not name.startswith("_") and _is_ours(member) and inspect.getdoc(member)
    ]


def _is_ours(member: Any) -> bool:
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None) or ""
    return inspect.isfunction(function) and module.startswith("assay.")


def entry(name: str) -> str:
    """The section of a name."""
    member = getattr(assay, name)
    head = "class " if inspect.isclass(member) else ""
    lines = [f"## {name}", "", "```text", head + signature_of(name, member), "```", ""]
    lines += [_plain(inspect.getdoc(member) or ""), ""]
    if inspect.isclass(member):
        for method, function in methods_of(member):
            first = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
            lines.append(f"- `{method}`: {_plain(first)}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """A docstring as Markdown: its indented examples as code."""
    parts = []
    for part in text.split("\n\n"):
        code = re.match(r"(?:\w+ = |\w+\()", part) and "\n" not in part.strip("\n")
        parts.append(f"```text\n{part}\n```" if code and part.endswith(")") else part)
    return _LINK.sub(r"\\[\1](", "\n\n".join(parts)).replace("<", "&lt;")


def page() -> str:
    """The whole page."""
    names = [name for name in assay.__all__ if name != "__version__"]
    return HEAD + "".join(f"\n{entry(name)}" for name in names)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
