"""Writes docs/openapi.json anew: `make docs` calls it."""

from __future__ import annotations

import json
from pathlib import Path

from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore

FILE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def written() -> str:
    """The document of the routes as they are now."""
    app = create_app(Settings(Path()), MemoryStore())
    return json.dumps(app.openapi(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
