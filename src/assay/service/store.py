"""Opens the store of a project, for reading or for writing."""

from __future__ import annotations

from contextlib import closing

from assay import registry
from assay.errors import PluginError, StoreError, UsageError, wrap_errors
from assay.ports import Cache, Store
from assay.service.project import project
from assay.settings import Settings
from assay.wire.text_files import is_absent


def open_store(settings: Settings, url: str | None = None) -> Store:
    """The store of the project, or of a URL; the caller closes it."""
    url = url or settings.config.store
    scheme, colon, _ = url.partition(":")
    if not colon:
        raise UsageError(f"{url!r} is not the URL of a store, such as 'sqlite:.assay/assay.db'")
    opener = registry.stores.get(scheme)
    with wrap_errors(f"the store {scheme!r} could not be opened", StoreError):
        store = opener(url, settings.root)
    for name in (*vars(Store), *vars(Cache)):
        if not name.startswith("_") and not hasattr(store, name):
            found = type(store).__name__
            raise PluginError(f"the store {scheme!r} is {found}, which has no {name!r}")
    if hasattr(store, "retry_seconds"):
        store.retry_seconds = settings.config.store_retry_seconds
    return store


def store_to_read(settings: Settings, url: str | None = None) -> Store:
    """The store for reading: a missing file is not created."""
    scheme, _, path = (url or settings.config.store).partition(":")
    if scheme == "sqlite" and path and is_absent(settings.root / path):
        url = "memory:"  # just as empty
    return open_store(settings, url)


def project_store(url: str | None) -> closing[Store]:
    """The store of the project, or of a URL, for reading; closed at the end of the block."""
    return closing(store_to_read(project(), url))
