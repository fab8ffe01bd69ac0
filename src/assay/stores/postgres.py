"""`postgresql://...`, the store in a PostgreSQL database, for several processes and machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import StoreError

if TYPE_CHECKING:
    from assay.stores.postgres_store import PostgresStore


def open_store(url: str, root: Path = Path()) -> PostgresStore:
    """The store of `postgresql://USER@HOST/DATABASE`; missing tables are made."""
    try:
        from assay.stores.postgres_store import PostgresStore
    except ImportError as error:
        fix = "pip install 'assay-evals[postgres]'"
        raise StoreError(f"a store in PostgreSQL needs psycopg ({error}): {fix}") from error
    return PostgresStore(url)
