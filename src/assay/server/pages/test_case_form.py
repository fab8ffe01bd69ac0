"""The form of a test case: what it has, what is wrong with it, and edits that met another edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from assay.model.test_case import (
    MAX_DESCRIPTION,
    MAX_TAG,
    MAX_TAGS,
    MAX_TEXT,
    NewTestCase,
    TestCase,
    TestCaseChanges,
    storable,
)

#: What the fields are called on the page.
LABELS = {
    "input": "Input",
    "expected_output": "Expected output",
    "description": "Description",
    "tags": "Tags",
}


class TestCaseForm(msgspec.Struct, frozen=True):
    """The texts of the fields, with line feeds only, as browsers change all other line breaks.

    `tags` has one on each line.
    """

    __test__ = False  # or pytest would collect the class for its name

    input: str = ""
    expected_output: str = ""
    description: str = ""
    tags: str = ""

    @classmethod
    def of(cls, case: TestCase) -> TestCaseForm:
        """The form of a test case."""
        texts = (case.input, case.expected_output, case.description or "", "\n".join(case.tags))
        return cls(*map(_with_line_feeds, texts))

    @classmethod
    def sent(cls, fields: Mapping[str, str]) -> TestCaseForm:
        """The form that a browser sent; a field that it left out is empty."""
        return cls(*(_with_line_feeds(fields.get(name, "")) for name in LABELS))

    def __getitem__(self, name: str) -> str:
        text: str = getattr(self, name)
        return text

    @property
    def tag_list(self) -> tuple[str, ...]:
        stripped = (line.strip() for line in self.tags.split("\n"))
        return tuple(dict.fromkeys(tag for tag in stripped if tag))

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong, by the name of the field."""
        found = {
            name: _wrong_length(getattr(self, name), 1, MAX_TEXT)
            for name in ("input", "expected_output")
        }
        found["description"] = _wrong_length(self.description, 0, MAX_DESCRIPTION)
        found["tags"] = self._problem_of_tags()
        for name in LABELS:
            if not storable(getattr(self, name)):
                found[name] = "It has a NUL character, which cannot be stored: remove it."
        return {name: problem for name, problem in found.items() if problem}

    def _problem_of_tags(self) -> str:
        tags = self.tag_list
        if len(tags) > MAX_TAGS:
            return f"There are {len(tags):,} tags, and at most {MAX_TAGS} are allowed."
        long = next((tag for tag in tags if len(tag) > MAX_TAG), None)
        if long is None:
            return ""
        start = f"{long[:20]}..."
        return f"The tag {start!r} has {len(long):,} characters, and at most {MAX_TAG} are allowed."

    def new(self) -> NewTestCase:
        return NewTestCase(
            self.input, self.expected_output, self.description or None, self.tag_list
        )

    def changed(self, other: TestCaseForm) -> set[str]:
        """The names of the fields that differ."""
        return {name for name in LABELS if getattr(self, name) != getattr(other, name)}

    def changes(self, current: TestCase) -> TestCaseChanges:
        """What saving writes: only what differs, as a form cannot hold every line break."""
        given: dict[str, Any] = {
            "input": self.input,
            "expected_output": self.expected_output,
            "description": self.description or None,
            "tags": self.tag_list,
        }
        changed = self.changed(TestCaseForm.of(current))
        return TestCaseChanges(**{name: given[name] for name in changed})


class Conflict(msgspec.Struct, frozen=True):
    """An edit of an older version: `fields` are what to go on with, and nothing is lost.

    Where only one of both changed a field, its text is taken. Where both did, it is in `both`, and
    the form has the text of this edit.
    """

    fields: TestCaseForm
    mine: set[str]
    theirs: set[str]
    both: set[str]

    def names(self, fields: set[str]) -> str:
        """`the input and the tags`; `nothing` for none."""
        found = [f"the {label.lower()}" for name, label in LABELS.items() if name in fields]
        return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:]))) or "nothing"


def merged(base: TestCaseForm, mine: TestCaseForm, theirs: TestCaseForm) -> Conflict:
    """This edit and another one, both of `base`."""
    my_names, their_names = mine.changed(base), theirs.changed(base)
    both = {name for name in my_names & their_names if name in mine.changed(theirs)}
    kept = {name: getattr(mine if name in my_names else theirs, name) for name in LABELS}
    return Conflict(TestCaseForm(**kept), my_names, their_names, both)


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _wrong_length(text: str, least: int, most: int) -> str:
    if len(text) < least:
        return f"It is empty; 1 to {most:,} characters are expected."
    if len(text) > most:
        return f"It has {len(text):,} characters, and at most {most:,} are allowed."
    return ""
