"""The entry point of the command: what it does beside calling the command."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from assay.cli.main import GC_THRESHOLD, main


@pytest.fixture
def collector() -> Iterator[None]:
    """The garbage collector is as before afterwards."""
    before = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_little_is_looked_through_for_garbage_and_nothing_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["assay", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert gc.get_threshold()[0] == GC_THRESHOLD
    assert gc.get_freeze_count() > 0
