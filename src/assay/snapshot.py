"""temporary"""

from __future__ import annotations

from typing import Any

from assay.settings import Settings


def capture(settings: Settings) -> dict[str, Any] | None:
    return None
