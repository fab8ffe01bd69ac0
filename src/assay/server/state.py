"""What the routes of a server share."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from assay.ports import Store
from assay.server.jobs import Clock, Jobs, utc_now
from assay.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """The project that is served, where it is stored, and the runs under way."""

    settings: Settings
    store: Store
    jobs: Jobs
    now: Clock = utc_now


def state_of(request: Request) -> State:
    state: State = request.app.state.assay
    return state
