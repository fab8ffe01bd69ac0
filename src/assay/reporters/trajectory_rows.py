"""The calls of a trajectory, expected and actual on the same row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from assay.model.diff import SIGNS, call_text, difference_text

#: The most rows of a trajectory.
MAX_ROWS = 200

#: Parts of a call, each with whether it differs from the other side.
Pieces = list[tuple[str, bool]]


class CallRow(msgspec.Struct, omit_defaults=True):
    """A row: `=` as expected, `~` with a difference, `-` only expected, `+` only actual."""

    sign: str
    expected: Pieces = []
    actual: Pieces = []
    note: str = ""


def rows_of(
    name: str,
    type: str,  # noqa: A002 - the key's name
    details: Mapping[str, Any],
) -> Iterator[tuple[str, list[CallRow]]]:
    """The rows of each trajectory with the name of its evaluator; also of members of composites."""
    if type == "composite":
        for member in details.get("members", ()):
            own = (member["type"], member.get("details", {}))
            yield from rows_of(f"{name}: {member['name']}", *own)
    elif type == "tool_trajectory" and (steps := details.get("diff")):
        yield name, _rows(steps)


def _rows(steps: Sequence[Mapping[str, Any]]) -> list[CallRow]:
    rows = [_row(step) for step in steps[:MAX_ROWS]]
    if len(steps) > MAX_ROWS:
        rows.append(CallRow("=", note=f"and {len(steps) - MAX_ROWS:,} more"))
    return rows


def _row(step: Mapping[str, Any]) -> CallRow:
    differences = step.get("differences", ())
    paths = {str(found["path"]).split(".")[0].split("[")[0] for found in differences}
    return CallRow(
        SIGNS[step["status"]],
        _pieces(step.get("expected"), paths),
        _pieces(step.get("actual"), paths),
        "; ".join(map(difference_text, differences)),
    )


def _pieces(call: Mapping[str, Any] | None, paths: set[str]) -> Pieces:
    """The call, with the arguments that differ apart from the rest."""
    if call is None:
        return []
    args = call.get("args")
    if "any_of" in call or not isinstance(args, dict) or not paths & set(args):
        return [(call_text(call), False)]
    pieces: Pieces = [(call_text({"tool": call["tool"]}) + "(", False)]
    for index, (key, value) in enumerate(args.items()):
        text = call_text({"tool": "", "args": {key: value}})[1:-1]
        pieces += [(", " if index else "", False), (text, key in paths)]
    return [piece for piece in (*pieces, (")", False)) if piece[0]]
