"""Programs of evaluators that do not exist: found before a run, not during it."""

from __future__ import annotations

from collections.abc import Iterable

from assay.caching import ReuseCache
from assay.model.case import EvalCase, EvalSuite
from assay.model.evaluator import EvaluatorSpec, MissingDependency
from assay.problems import Problem, Severity


class MissingPrograms:
    """Collects the missing dependencies of evaluators; `problems` has each of them once.

    They are warnings, as another machine may have the program, unless the cases are `to_run`.
    """

    def __init__(self, *, to_run: bool = False) -> None:
        self._to_run = to_run
        #: Cases of a file share their evaluators: programs are looked for once, not for every case.
        #: Each list is kept with its evaluator, so that the `id()` of that is not used again.
        self._known = ReuseCache[tuple[int, str], tuple[EvaluatorSpec, list[MissingDependency]]]()
        self._found: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        return list(self._found)

    def look(self, case: EvalCase) -> None:
        if case.skip is None and any(map(_may_have_missing_dependencies, case.evaluators)):
            for path, spec in case.walk_evaluators():
                for lack in self._missing_dependencies(spec, case.folder):
                    severity: Severity = "error" if self._to_run else "warning"
                    message = f"{spec.name}: {lack.message}"
                    place = case.origin_of(path)
                    problem = Problem(*place, severity, "program-not-found", message, lack.hint)
                    self._found[problem] = None

    def _missing_dependencies(self, spec: EvaluatorSpec, folder: str) -> list[MissingDependency]:
        key = (id(spec), folder)
        known = self._known.get(key) or self._known.promote(key)
        if known is None:
            known = spec, list(spec.missing_dependencies(folder))
            self._known.add(key, known)
        return known[1]


def _may_have_missing_dependencies(spec: EvaluatorSpec) -> bool:
    return type(spec).missing_dependencies is not EvaluatorSpec.missing_dependencies


def missing_programs(suites: Iterable[EvalSuite]) -> list[Problem]:
    """A problem for each missing dependency of the evaluators of all cases."""
    found = MissingPrograms()
    for suite in suites:
        for case in suite:
            found.look(case)
    return found.problems
