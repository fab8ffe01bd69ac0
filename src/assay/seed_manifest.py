"""Seed tokens in expectations, checked against the seed manifest when a file is loaded."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from assay.errors import EvalFileErrors
from assay.model import tokens
from assay.model.case import EvalCase, Origin
from assay.model.expect import ExpectBase
from assay.problems import Problem
from assay.settings import Settings, shown_path
from assay.wire import json
from assay.wire.text_files import is_absent, read_text


class Seeds:
    """The project's seed manifest, read when the first token needs it."""

    def __init__(self, settings: Settings) -> None:
        self.file, self.name = settings.seed_manifest, shown_path(settings.seed_manifest)
        self._broken: list[Problem] = []
        self._reported = False

    @cached_property
    def data(self) -> Any:
        """The manifest; empty if there is none or it cannot be read."""
        if is_absent(self.file):
            return {}
        try:
            document = json.parse(read_text(self.file, self.name), self.name)
        except EvalFileErrors as error:
            self._broken += error.problems
            return {}
        self._broken += document.problems
        return document.data

    @property
    def faults(self) -> list[Problem]:
        """What is wrong with the manifest itself."""
        _ = self.data  # reads the manifest, if that has not been done
        return list(self._broken)

    def problems(self, case: EvalCase) -> list[Problem]:
        """A warning for each seed token of the case that has no value."""
        problems: list[Problem] = []
        for path, spec in case.walk_evaluators():
            if not isinstance(spec, ExpectBase):
                continue
            for steps, text in spec.texts_with_tokens():
                for token in tokens.find(text):
                    if token.source == "seed" and not tokens.value_of(token, {"seed": self.data}):
                        place = case.origin_of((*path, *steps))
                        problems.append(self._unresolved(token, place))
        if self._broken:  # the values are unknown, so only the manifest is reported, and once
            problems, self._reported = [] if self._reported else self._broken, True
        return problems

    def _unresolved(self, token: tokens.Token, place: Origin) -> Problem:
        message = f"{token.text} has no value in {self.name}"
        hint = "the assertion is skipped until it has one"
        return Problem(*place, "warning", "unresolved-seed", message, hint)
