"""What the routes of a server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.requests import Request

from assay.ports import Store
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.server.jobs import Jobs

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


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
