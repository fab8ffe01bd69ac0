"""`postgresql://...`, a store in PostgreSQL, which processes and machines can share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import StoreError

if TYPE_CHECKING:
    from assay.stores.postgres_store import PostgresStore


def open_store(url: str, root: Path = Path()) -> PostgresStore:
    """The store at `postgresql://USER@HOST/DATABASE`; missing tables are created."""
    try:
        from assay.stores.postgres_store import PostgresStore
    except ImportError as error:
        fix = "pip install 'assay-evals[postgres]'"
        raise StoreError(f"a store in PostgreSQL needs psycopg ({error}): {fix}") from error
    return PostgresStore(url)
