"""RunResultBuilder: passed to the engine to make the result of a run and write its files."""

from __future__ import annotations

from msgspec.structs import replace

from assay.engine.run_spec import RunEnding, RunSpec
from assay.errors import nearest
from assay.model.run_result import RunResult
from assay.results import calibrations
from assay.results.folder import folder_shown, results_folder, write_files
from assay.results.run import conclude, recorded_summary, result_of
from assay.settings import Settings


class RunResultBuilder:
    """Made before the first case is asked: a broken file of calibrations should not cost a run."""

    def __init__(self, settings: Settings) -> None:
        self._folder = results_folder(settings)
        self._calibrations = calibrations.read(settings.root)

    def finish(self, ending: RunEnding) -> RunResult:
        """The result of the run, with its exit code; its files are written."""
        spec, record = ending.spec, ending.record
        result = result_of(
            spec.store,
            record,
            comparison=ending.comparison,
            notes=ending.notes,
            calibrations=self._calibrations,
        )
        result = conclude(
            result,
            spec.options,
            gave_up=ending.gave_up,
            faults=ending.faults,
            nothing=spec.nothing_wanted,
            hint="" if result.summary.total_cases else _tag_hint(spec),
        )
        summary = recorded_summary(
            result,
            ending.sequential,
            narrowed=ending.narrowed,
            unreported=spec.reports and record.status == "finished",
        )
        result = replace(result, record=replace(record, summary=summary))
        files = write_files(result, self._folder)
        return replace(result, folder=folder_shown(files))


def _tag_hint(spec: RunSpec) -> str:
    """The tag nearest to a given one that no case has; streams are not read again for it."""
    if not spec.options.tag:
        return ""
    suites = (suite for suite in spec.suites if not suite.streamed)
    known = sorted({tag for suite in suites for case in suite.cases for tag in case.tags})
    return next(filter(None, (nearest(t, known) for t in spec.options.tag if t not in known)), "")
