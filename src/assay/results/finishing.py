"""RunResults: what the engine is handed to make the result of a run and write its files."""

from __future__ import annotations

from msgspec.structs import replace

from assay.engine.job import Ending
from assay.judges import calibrations
from assay.model.run_result import RunResult
from assay.results.folder import folder_shown, results_folder, write_files
from assay.results.run import conclude, recorded_summary, result_of
from assay.settings import Settings


class RunResults:
    """Made before the first case is asked: a broken file of calibrations should not cost a run."""

    def __init__(self, settings: Settings) -> None:
        self._folder = results_folder(settings)
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
        files = write_files(result, self._folder)
        return replace(result, folder=folder_shown(files))
