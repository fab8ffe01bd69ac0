"""The addresses of pages."""

from __future__ import annotations

from urllib.parse import urlencode

from assay.model.case_filter import CaseFilter

#: The order of the cases of a run: errored and failed ones come first.
DEFAULT_SORT = "outcome"


def run_page(run_id: str) -> str:
    return f"/runs/{run_id}"


def group_page(group_id: str) -> str:
    return f"/groups/{group_id}"


def case_list(
    run_id: str, where: CaseFilter | str, sort: str = DEFAULT_SORT, **more: object
) -> str:
    """The list of cases on the page of their run; `more` are further parameters."""
    return f"{run_page(run_id)}{_query(where, sort, more)}#cases"


def case_page(
    run_id: str,
    position: int,
    where: CaseFilter | str = "",
    sort: str = DEFAULT_SORT,
    **more: object,
) -> str:
    """The page of a case, which knows the list that it was reached from."""
    return f"{run_page(run_id)}/cases/{position}{_query(where, sort, more)}"


def download(run_id: str, where: CaseFilter | str, suffix: str) -> str:
    """The cases of a list as a file."""
    return f"{run_page(run_id)}/cases.{suffix}{_query(where, DEFAULT_SORT, {})}"


def compare_page(base: str, candidate: str) -> str:
    return "/compare?" + urlencode({"base": base, "candidate": candidate})


def _query(where: CaseFilter | str, sort: str, more: dict[str, object]) -> str:
    given = {"filter": str(where), "sort": "" if sort == DEFAULT_SORT else sort, **more}
    query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
    return f"?{query}" if query else ""
