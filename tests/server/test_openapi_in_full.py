"""What the OpenAPI document says is tried at length; listing the tries alone takes seconds."""

from __future__ import annotations

from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings

from assay.ports import Store
from server.test_openapi import DOCUMENT, NOT_JSON, Renewed, check, served, validate
from server.valid_requests import end, fit

__all__ = ["served"]

DESCRIBED = schemathesis.openapi.from_dict(DOCUMENT).exclude(path=NOT_JSON)


@pytest.mark.full
@DESCRIBED.parametrize()
@hypothesis_settings(max_examples=300)
def test_many_answers_are_as_described(case: Any, served: tuple[str, Renewed]) -> None:
    validate(case, served)


@pytest.mark.full
def test_sequences_of_requests_are_answered_as_described(served: tuple[str, Renewed]) -> None:
    url, store = served
    described = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # Whether a run can still be cancelled or resumed depends on time; a sequence must not.
    timeless = described.exclude(path=NOT_JSON).exclude(path_regex="/(cancel|resume)$")
    machine = timeless.as_state_machine()

    class Machine(machine):  # type: ignore[misc, valid-type]
        def setup(self) -> None:
            store.renew()  # each sequence begins with the same store

        def before_call(self, case: Any) -> None:
            fit(case, cast("Store", store), store.run_id)

        def after_call(self, response: Any, case: Any) -> None:
            super().after_call(response, case)
            end(case, response, url)

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            check(case, response)

    # Schemathesis discards many inputs of its own; the document is not at fault.
    patient = [HealthCheck.filter_too_much, HealthCheck.too_slow]
    Machine.run(
        settings=hypothesis_settings(
            max_examples=50, phases=[Phase.generate], suppress_health_check=patient
        )
    )
