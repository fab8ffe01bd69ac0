"""Tier files: `<tool>.golden.json`, `.labeled.json`, `.regression.json`, `.rubric.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from assay.errors import EvalFileErrors
from assay.loaders.cases import validation_context
from assay.loaders.effective import expect_evaluator, rubric_evaluator
from assay.loaders.locators import Locator
from assay.loaders.suite import duplicate_ids
from assay.model.case import CRITICAL_TIERS, EvalCase, EvalSuite, Tier
from assay.model.evaluator import named
from assay.model.message import Message
from assay.model.stubs import unreachable_stubs
from assay.model.tiers import TIERS, TierCase, TierFile, TierMetadata
from assay.problems import Problems
from assay.seed_manifest import Seeds
from assay.settings import Settings, shown_path
from assay.wire import json
from assay.wire.document import DocPath, Document
from assay.wire.text_files import read_text
from assay.wire.validation import check
from assay.wire.validation_errors import shown


def load(file: Path, settings: Settings) -> EvalSuite:
    """Load the suite of a file; raises EvalFileErrors with all of its problems."""
    document = json.parse(read_text(file, shown_path(file)), shown_path(file))
    return _TierReader(document, file, settings).suite()


def recognises(file: Path) -> str:
    """A file with the suffix of a tier always is an eval file."""
    return ""


class _TierReader:
    def __init__(self, document: Document, file: Path, settings: Settings) -> None:
        self.document = document
        self.tool, _, tier = file.name.removesuffix(".json").rpartition(".")
        self.tier = cast(Tier, tier)
        self.context, self.seeds = validation_context(file, settings), Seeds(settings)
        self.problems = Problems(document.file, document.problems)

    def suite(self) -> EvalSuite:
        metadata, base, entries = self._root()
        cases: list[EvalCase] = []
        self.problems += duplicate_ids(self.document, base, entries)
        for index, raw in enumerate(entries):
            if self.problems.full:
                break
            path: DocPath = (*base, index)
            written, problems = check(TIERS[self.tier], self.document, path, raw, self.context)
            self.problems += problems
            if written is not None:
                case = self._case(written, path)
                self.problems += self.seeds.problems(case)
                self.problems += unreachable_stubs(case.id, case.stubs, case.origin_of)
                cases.append(case)
        # A regression file may be empty: its cases are archived one by one.
        if not entries and not self.problems and self.tier != "regression":
            self._note(base, "no-cases", "the file has no case")
        if self.problems.errors:
            raise EvalFileErrors(self.problems.sorted())
        return EvalSuite(
            name=f"{metadata.toolName or self.tool}.{self.tier}",
            file=self.document.file,
            cases=tuple(cases),
            tier=self.tier,
            tool_name=metadata.toolName or self.tool,
            metadata=metadata.model_dump(exclude_unset=True),
            warnings=tuple(self.problems.sorted()),
        )

    def _root(self) -> tuple[TierMetadata, tuple[str, ...], list[Any]]:
        """The metadata, the path of the list of cases, and the list."""
        data = self.document.data
        if isinstance(data, list):
            return TierMetadata(), (), data
        if not isinstance(data, dict):
            self._note((), "wrong-type", f"the file contains {shown(data)}, not a list of cases")
            return TierMetadata(), (), []
        envelope, problems = check(TierFile, self.document, (), data, self.context)
        self.problems += problems
        entries = data.get("cases")
        metadata = envelope.metadata if envelope else TierMetadata()
        # Taken from the raw metadata, which may have other errors; the shape refuses unknown tiers.
        tier = self.document.get(("metadata", "tier"))
        if tier != self.tier and isinstance(tier, str) and tier in TIERS:
            message = f"the tier is {tier!r} in the metadata, but {self.tier!r} in the file name"
            self._note(("metadata", "tier"), "wrong-value", message)
        return metadata, ("cases",), entries if isinstance(entries, list) else []

    def _case(self, written: TierCase, path: DocPath) -> EvalCase:
        block, dimensions = written.block, getattr(written, "rubric", ())
        if block is not None and not block.asserted() and written.skip is None:
            self._note(
                (*path, "expect"), "asserts-nothing", f"the case {written.id!r} asserts nothing"
            )
        rubrics = tuple(dimension.to_rubric() for dimension in dimensions)
        critical = written.critical
        return EvalCase(
            id=written.id,
            input_messages=(Message("user", written.input.message),),
            evaluators=named(
                (expect_evaluator(block) if block is not None else rubric_evaluator(rubrics),)
            ),
            description=written.description,
            rubrics=rubrics,
            tags=tuple(written.tags),
            metadata=written.metadata,
            tier=self.tier,
            skip=written.skip,
            cluster=written.cluster,
            critical=self.tier in CRITICAL_TIERS if critical is None else critical,
            difficulty=getattr(written, "difficulty", None),
            created_at=getattr(written, "createdAt", None),
            bug_ref=getattr(written, "bugRef", None),
            reference_data=getattr(written, "referenceData", None),
            stubs=written.stubs,
            max_turns=written.maxTurns,
            locate=Locator(self.document, path, type(written)),
        )

    def _note(self, path: DocPath, code: str, message: str) -> None:
        self.problems.append(self.document.problem(path, code, message))
