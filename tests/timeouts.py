"""How long tests wait for what they started: long enough on a busy machine, too."""

from __future__ import annotations

#: Seconds. Only what hangs takes this long, so no test can fail because others use the machine.
WAIT_SECONDS = 100.0
