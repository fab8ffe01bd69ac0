"""RunResults: what the engine is handed to make the result of a run and write its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from assay.engine.job import Ending
from assay.judges import calibrations
from assay.model.run import RunRecord, SuiteHeader
from assay.model.run_result import RunResult
from assay.results.folder import folder_shown, results_folder, write_files
from assay.results.run import Count, conclude, head_of_suite, recorded_summary, result_of
from assay.settings import Settings


class RunResults:
    """Made before the first case is asked: a broken file of calibrations should not cost a run."""

    def __init__(self, settings: Settings) -> None:
        self.folder = results_folder(settings)
        self._calibrations = calibrations.read(settings.root)

    def finish(self, ending: Ending) -> RunResult:
        """The result of the run, with its exit code; its files are written."""
        job, record = ending.job, ending.record
        result = result_of(
            job.store,
            record,
            comparison=ending.comparison,
            notes=ending.notes,
            calibrations=self._calibrations,
            counts={index: spool.count for index, spool in ending.spools.items()},
        )
        result = conclude(
            result,
            job.options,
            gave_up=ending.gave_up,
            faults=ending.faults,
            nothing=job.nothing_wanted,
        )
        summary = recorded_summary(
            result,
            ending.sequential,
            narrowed=ending.narrowed,
            unreported=job.reports and record.status == "finished",
        )
        result = replace(result, record=replace(record, summary=summary))
        files = write_files(_with_spools(result, ending.spools), self.folder)
        return replace(result, folder=folder_shown(files))

    def head_of(self, record: RunRecord, header: SuiteHeader) -> bytes:
        return head_of_suite(record, header)

    def new_count(self) -> Count:
        return Count()


def _with_spools(result: RunResult, spools: Mapping[int, Any]) -> RunResult:
    """The result with the cases of streamed suites as they were spooled."""
    suites = list(result.suites)
    for index, spool in spools.items():
        suites[index] = replace(suites[index], written=spool)
    return replace(result, suites=tuple(suites))
