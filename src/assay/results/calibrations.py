"""`calibrations.json` in the project root, to be committed: how well judges agree with labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.atomic_files import replacing, writing
from assay.errors import UsageError, unreadable
from assay.model.calibration import Calibration, CalibrationState, JudgeUse
from assay.settings import shown_path
from assay.stats.calibration import corrected_rate, kappa
from assay.stats.proportions import wilson

FILE = "calibrations.json"


def read(root: Path) -> list[Calibration]:
    """All calibrations of a project; none when there is no file."""
    file = root / FILE
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[Calibration])
        for calibration in found:
            _ = calibration.table  # raises ValueError for counts that make no table
        return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        reason = f"is not a list of calibrations: {unreadable(error)}; `assay calibrate` writes it"
        raise UsageError(f"{shown_path(file)} {reason}") from None


def save(root: Path, calibration: Calibration) -> Path:
    """Write a calibration, in place of the judge's previous one."""
    others = [
        known
        for known in read(root)
        if (known.judge_id, known.evaluator) != (calibration.judge_id, calibration.evaluator)
    ]
    ordered = sorted([*others, calibration], key=lambda known: (known.evaluator, known.judge_id))
    file = root / FILE
    with writing(shown_path(file)), replacing(file) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(ordered)) + b"\n")
    return file


def state_of(
    use: JudgeUse, known: Iterable[Calibration]
) -> tuple[CalibrationState, Calibration | None]:
    """Whether the current judge is calibrated. A calibration applies under any evaluator name."""
    stale: Calibration | None = None
    for calibration in known:
        if calibration.judge_id == use.id:
            return "current", calibration
        if (calibration.evaluator, calibration.type) == (use.evaluator, use.type):
            stale = calibration
    return ("none", None) if stale is None else ("stale", stale)


def statistics_of(
    use: JudgeUse, passed: int, judged: int, known: Sequence[Calibration]
) -> dict[str, Any]:
    """A judge in the results: its pass rate, also corrected if its calibration is current."""
    state, calibration = state_of(use, known)
    rate = wilson(passed, judged)
    found: dict[str, Any] = use.to_dict() | {
        "passRate": None if rate is None else rate.to_dict() | {"judged": judged},
        "calibration": {"state": state},
    }
    if calibration is None:
        return found
    agreement = kappa(calibration.table)
    found["calibration"] |= {
        "calibratedAt": calibration.calibrated_at,
        "labels": calibration.table.n,
        "kappa": None if agreement is None else agreement.to_dict(),
    }
    if state == "current":
        corrected = corrected_rate(passed, judged, calibration.table)
        found["corrected"] = None if corrected is None else corrected.to_dict()
    return found
