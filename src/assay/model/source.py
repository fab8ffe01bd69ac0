"""Sources of data for a project before a run: a file, a function or a program."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator

from assay.model.function import Function
from assay.model.script import Script
from assay.wire.fields import Empty, Positive, Text
from assay.wire.rules import Excludes, NeedsOne, Rule, Ruled
from assay.wire.validation_errors import problem, shown


class Source(Ruled):
    """One of `file`, `callable` and `command`; the other keys are for a program."""

    rules: ClassVar[tuple[Rule, ...]] = (
        NeedsOne(("file", "callable", "command"), "needs 'file', 'callable' or 'command'"),
        Excludes("file", ("callable", "command", "cwd", "env")),
        Excludes("callable", ("command", "cwd", "env")),
    )

    file: Text | None = None
    callable: Function | None = None
    command: Script | None = None
    cwd: Text = "."
    env: list[Text] = Empty(list)
    timeout_seconds: Positive = 60.0
    max_output_mb: Positive = 10.0

    @property
    def label(self) -> str:
        """Its name in messages."""
        if self.callable is not None:
            return f"python:{self.callable}"
        return self.file if self.file is not None else f"command {(self.command or [''])[-1]!r}"


def _expand(raw: Any) -> Any:
    """Expand a text: `python:...`, `command:...`, or the path of a file."""
    if raw is None or isinstance(raw, dict):
        return raw
    if not isinstance(raw, str):
        raise problem("wrong-type", f"is {shown(raw)}, neither text nor a mapping")
    start, colon, rest = raw.partition(":")
    key = {"python": "callable", "command": "command"}.get(start) if colon else None
    return {"file": raw} if key is None else {key: rest}


def _refuse_file(source: Source | None) -> Source | None:
    if source is not None and source.file is not None:
        hint = "for example 'python:my_module:capture' or 'command:./capture.sh'"
        raise problem("wrong-value", f"{source.file!r} is neither a function nor a program", hint)
    return source


#: A mapping or a text; a text that is neither a function nor a program is a file.
AnySource = Annotated[
    Source | None, BeforeValidator(_expand, json_schema_input_type=Text | Source | None)
]
#: The same without files: captured for every run.
LiveSource = Annotated[AnySource, AfterValidator(_refuse_file)]
