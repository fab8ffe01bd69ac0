"""TestCase: a case that people keep and edit in the store, and its versions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from assay.errors import InvalidText, Outdated

#: The longest `input`, and the longest `expected_output`, in code points; neither is empty.
MAX_TEXT = 10_000
#: The longest `description`; it may be empty.
MAX_DESCRIPTION = 500
#: The most tags of a test case.
MAX_TAGS = 10
#: The longest tag; none is empty.
MAX_TAG = 50

#: NUL and halves of surrogate pairs, which databases cannot store.
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
#: The separator of tags: UTF-8 never has this byte, so no search matches across it.
TAG_SEPARATOR = b"\xff"
_MICROSECOND = timedelta(microseconds=1)

#: The pattern of the times in test cases.
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
Time = Annotated[str, Meta(pattern=TIME, extra_json_schema={"format": "date-time"})]

#: A version of a test case: its id, and the number of the version.
Pin = tuple[str, int]


class NewTestCase(msgspec.Struct, frozen=True):
    """A test case to add; without an id it gets a random one."""

    input: str
    expected_output: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None


class TestCaseChanges(msgspec.Struct, frozen=True):
    """The changes to a test case; UNSET fields stay as they are."""

    __test__ = False  # or pytest would collect the class for its name

    input: str | UnsetType = UNSET
    expected_output: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET


class ShownTestCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test case in the REST API.

    Times are UTC texts with six fractional digits, so that they sort by time.
    """

    id: Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
    input: str
    expected_output: str
    description: str | None
    tags: tuple[str, ...]
    created_at: Time
    modified_at: Time


class TestCase(ShownTestCase, frozen=True, forbid_unknown_fields=True):
    """A version of a test case; each write adds one, and `version` numbers them from 1."""

    __test__ = False

    version: Annotated[int, Meta(ge=1)]


class TestCasePage(NamedTuple):
    """A page of test cases, and the total number of matches."""

    test_cases: list[TestCase]
    total: int


def first_version(new: NewTestCase, case_id: str, now: datetime) -> TestCase:
    """The first version of a new test case."""
    time = utc_text(now)
    texts = new.input, new.expected_output, new.description
    return TestCase(case_id, *texts, new.tags, time, time, 1)


def next_version(
    newest: TestCase, changes: TestCaseChanges, now: datetime, known: str | None = None
) -> TestCase:
    """The version after a change; its time is later than the last one, even if the clock is not.

    Raises Outdated when the time of the last version is not the `known` one.
    """
    if known is not None and known != newest.modified_at:
        raise Outdated(newest.id, newest.modified_at)
    given = {k: v for k, v in msgspec.structs.asdict(changes).items() if v is not UNSET}
    after = datetime.fromisoformat(newest.modified_at) + _MICROSECOND
    return msgspec.structs.replace(
        newest, **given, modified_at=utc_text(max(now, after)), version=newest.version + 1
    )


def utc_text(time: datetime) -> str:
    """The format of times in test cases: `2026-01-31T12:00:00.000000Z`."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def storable(text: str) -> bool:
    """Can every database store the text?"""
    return _NOT_STORABLE.search(text) is None


def folded(tags: Sequence[str]) -> bytes:
    """The tags in the form that is searched: case-folded, sorted and joined."""
    return TAG_SEPARATOR.join(sorted({tag.casefold().encode() for tag in tags}))


def count_tags(sets: Iterable[tuple[bytes, int]]) -> dict[str, int]:
    """How many test cases have each tag, from sets of `folded` tags and their sizes."""
    found = Counter[str]()
    for tags, total in sets:
        for tag in bytes(tags).split(TAG_SEPARATOR) if tags else ():
            found[tag.decode()] += total
    return dict(found)


def search_key(tag: str) -> bytes | None:
    """What to search for in `folded` tags; None when no tag can contain it."""
    return tag.casefold().encode() if storable(tag) else None


def refuse_unfit(written: NewTestCase | TestCaseChanges) -> None:
    """Raise InvalidText for the first text that cannot be stored."""
    for name, value in msgspec.structs.asdict(written).items():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and (unfit := _NOT_STORABLE.search(text)) is not None:
                raise InvalidText(name, ord(unfit[0]), unfit.start() + 1)
