"""The snapshot: the values of `{{snapshot:path}}` tokens, captured once before a run."""

from __future__ import annotations

from typing import Any

from assay.errors import SnapshotError
from assay.settings import Settings
from assay.suites.sources import document_of
from assay.wire.validation_errors import shown


def capture(settings: Settings) -> dict[str, Any] | None:
    """The current values, from the configured function or program; None without one."""
    source = settings.config.snapshot
    if source is None:
        return None
    data = document_of(source, settings, SnapshotError).data
    if not isinstance(data, dict):
        raise SnapshotError(f"{source.label} returned {shown(data)}, not a JSON object")
    return data
