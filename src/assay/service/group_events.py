"""The events of the runs of a group, as those of one run."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.events import Event, Listener, Notice, RunFinished, RunStarted


class GroupEvents:
    """Reports the events of several runs as those of one."""

    def __init__(self, listen: Listener, group_id: str, targets: Sequence[str]) -> None:
        self._listen, self._group_id, self._targets = listen, group_id, targets
        self._started: list[RunStarted] = []
        self._ended: list[RunFinished] = []
        self._seen: set[str] = set()

    def add(self, target: str, event: Event) -> None:
        if isinstance(event, Notice):
            if not event.of_group:
                self._listen(Notice(f"{target}: {event.text}"))
            elif event.text not in self._seen:
                self._seen.add(event.text)
                self._listen(event)
        elif isinstance(event, RunStarted):
            self._started.append(event)
            if len(self._started) == len(self._targets):
                self._listen(self._all_started())
        elif isinstance(event, RunFinished):
            self._ended.append(event)
            if len(self._ended) == len(self._targets):
                ended = {each.status for each in self._ended}
                self._listen(RunFinished("interrupted" if "interrupted" in ended else "finished"))
        else:
            self._listen(event)

    def _all_started(self) -> RunStarted:
        planned = [each.planned for each in self._started]
        total = None if None in planned else sum(number or 0 for number in planned)
        done = sum(each.done for each in self._started)
        return RunStarted(self._group_id, ", ".join(self._targets), total, done)
