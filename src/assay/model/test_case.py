"""TestCase: a case that people keep and edit in the store, and the versions it went through."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from assay.errors import InvalidText, Outdated

#: The longest `input`, and the longest `expected_output`, in code points; neither is empty.
MAX_TEXT = 10_000
#: The longest `description`; it may be empty.
MAX_DESCRIPTION = 500
#: The most tags of a test case.
MAX_TAGS = 10
#: The longest tag; none is empty.
MAX_TAG = 50

#: NUL and halves of surrogate pairs: databases do not take them.
_UNFIT = re.compile("[\x00\ud800-\udfff]")
#: Stands between tags: no text has this byte in UTF-8, so nothing matches across it.
BETWEEN = b"\xff"
_TICK = timedelta(microseconds=1)

#: A version of a test case: its id, and the number of the version.
Pin = tuple[str, int]


class NewTestCase(msgspec.Struct, frozen=True):
    """What a test case is made of. Without an id it gets a random one."""

    input: str
    expected_output: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None


class TestCaseChanges(msgspec.Struct, frozen=True):
    """What is to be changed of a test case; what is UNSET stays as it is."""

    __test__ = False  # pytest takes everything called Test for a test

    input: str | UnsetType = UNSET
    expected_output: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET


class TestCase(msgspec.Struct, frozen=True):
    """A test case as it was from one write to the next; `version` counts the writes from 1.

    Times are UTC texts with six fractional digits, so that they sort as they follow each other.
    """

    __test__ = False

    id: str
    input: str
    expected_output: str
    description: str | None
    tags: tuple[str, ...]
    created_at: str
    modified_at: str
    version: int

    def to_dict(self) -> dict[str, Any]:
        """The test case as the REST interface shows it."""
        shown = msgspec.structs.asdict(self) | {"tags": list(self.tags)}
        del shown["version"]
        return shown


class TestCasePage(NamedTuple):
    """Some of the test cases that were asked for, and how many there are in all."""

    test_cases: list[TestCase]
    total: int


def first_version(new: NewTestCase, case_id: str, now: datetime) -> TestCase:
    """The test case that is added."""
    time = utc_text(now)
    texts = new.input, new.expected_output, new.description
    return TestCase(case_id, *texts, new.tags, time, time, 1)


def next_version(
    newest: TestCase, changes: TestCaseChanges, now: datetime, known: str | None = None
) -> TestCase:
    """The test case after a change; its time is a later one, whatever the clock says.

    Raises Outdated when its time is not the one that is known.
    """
    if known is not None and known != newest.modified_at:
        raise Outdated(newest.id, newest.modified_at)
    given = {k: v for k, v in msgspec.structs.asdict(changes).items() if v is not UNSET}
    after = datetime.fromisoformat(newest.modified_at) + _TICK
    return msgspec.structs.replace(
        newest, **given, modified_at=utc_text(max(now, after)), version=newest.version + 1
    )


def utc_text(time: datetime) -> str:
    """A moment as test cases write it: `2026-01-31T12:00:00.000000Z`."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def storable(text: str) -> bool:
    """Can every store keep the text?"""
    return _UNFIT.search(text) is None


def folded(tags: Sequence[str]) -> bytes:
    """The tags as they are searched, without case; in the same order for the same tags."""
    return BETWEEN.join(sorted({tag.casefold().encode() for tag in tags}))


def sought(tag: str) -> bytes | None:
    """What `folded` tags are searched for; None when no tag can have it in it."""
    return tag.casefold().encode() if storable(tag) else None


def refuse_unfit(written: NewTestCase | TestCaseChanges) -> None:
    """Raises InvalidText for the first text that some store could not keep."""
    for name, value in msgspec.structs.asdict(written).items():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and (unfit := _UNFIT.search(text)) is not None:
                raise InvalidText(name, ord(unfit[0]), unfit.start() + 1)
