"""The runs that this server has under way."""

from __future__ import annotations

from pathlib import Path

from assay.ports import Store
from assay.server.state import Clock
from assay.settings import Settings


class Jobs:
    """Starts runs, each in a thread of its own, and stops them."""

    def __init__(self, settings: Settings, store: Store, root: Path, now: Clock) -> None:
        self.settings, self.store, self.root, self.now = settings, store, root, now

    async def recover(self) -> None:
        """Go on."""

    async def end(self) -> None:
        """Stop."""

    def stop(self) -> None:
        """Stop soon."""
