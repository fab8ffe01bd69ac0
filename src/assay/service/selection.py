"""Selects the cases of a run by the results of an earlier one."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from msgspec.structs import replace

from assay.comparison.outcomes import LATEST, find_run, newest_first, outcomes_of
from assay.engine.run_spec import RunSpec, project_path
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.case_filter import parse_filter
from assay.model.comparison import CaseRef
from assay.model.options import RunOptions
from assay.model.run import RunRecord
from assay.ports import Store
from assay.service.cases import case_rows


def with_run(
    options: RunOptions, store: Store, *, earlier: str | None = None, resumes: bool = False
) -> RunOptions:
    """The options with the id of the run whose results `select` is about, if it needs one.

    `earlier` is the run to take if none is named. `resumes` if the run to resume is to be found.
    """
    if options.select is None:
        if options.of is not None:
            raise UsageError(f"--of {options.of} has no effect: give --select FILTER too")
        return options
    fields = parse_filter(options.select).fields_of_results
    reference = options.of or (earlier if fields else None)
    if reference is not None:
        run = _finished(reference, store) if resumes else find_run(reference, store)
        return options.model_copy(update={"of": run.id})
    if fields:
        terms = ", ".join(dict.fromkeys(fields))
        hint = "name the run that has them with --of RUN, such as --of latest"
        raise UsageError(f"--select {shlex.quote(options.select)} needs results ({terms}): {hint}")
    return options


def _finished(reference: str, store: Store) -> RunRecord:
    """The run of that name; `latest` is not the run that is to be resumed."""
    if reference != LATEST:
        return find_run(reference, store)
    runs = (run for run in newest_first(store) if run.status == "finished")
    return next(runs, None) or find_run(reference, store)


def only_selected(job: RunSpec) -> RunSpec:
    """The job with only the cases that the filter matches in the run that it is about."""
    if job.options.of is None:
        return job
    select = job.options.select or ""
    run = job.store.run(job.options.of)
    rows = case_rows(job.store, run, parse_filter(select))
    refs = {CaseRef(row.suite, row.id) for row in rows}
    nothing = f"no case of the run {run.id} matches --select {shlex.quote(select)}"
    return _only(job, refs, job.nothing_wanted or ("" if refs else nothing))


def only_these(job: RunSpec, refs: Collection[CaseRef]) -> RunSpec:
    """The job with only these cases."""
    return _only(job, refs, job.nothing_wanted)


def _only(job: RunSpec, refs: Collection[CaseRef], nothing: str) -> RunSpec:
    """The job with only these cases; `nothing` is why there is none of them."""
    files = [project_path(suite.file, job.settings) for suite in job.suites]
    others = job.wanted

    def wanted(suite: int, case: EvalCase) -> bool:
        chosen = CaseRef(files[suite], case.id) in refs
        return chosen and (others is None or others(suite, case))

    return replace(job, wanted=wanted, nothing_wanted=nothing)


def only_failed(job: RunSpec, earlier: RunRecord) -> RunSpec:
    """The job with only the cases that failed or errored in the earlier run."""
    outcomes = outcomes_of(earlier.id, job.store, job.settings.root)
    failed = {case.ref for case in outcomes if case.outcome in ("failed", "errored")}
    if not failed:
        return _only(job, failed, f"no case failed in the run {earlier.id}: nothing to rerun")
    files = {project_path(suite.file, job.settings): suite for suite in job.suites}
    here = any(CaseRef(file, case.id) in failed for file, suite in files.items() for case in suite)
    missing = f"none of the cases that failed in the run {earlier.id} is in these files"
    return _only(job, failed, "" if here else missing)
