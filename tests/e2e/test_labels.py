"""`assay labels`: labels move between the store and label files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_labels_are_imported_and_exported_again(place: Any, tmp_path: Path) -> None:
    run = place.run()["runId"]
    case = place.json("show", "--json")["cases"][0]["id"]
    labels = tmp_path / "mine.csv"
    labels.write_text(f"id,label\n{case},fail\nno-such-case,pass\n")
    wanted = ("--evaluator", "quality")
    added = place.assay("labels", "import", str(labels), *wanted, "--author", "ann")
    assert added.stdout == f"1 label added to the run {run}\n"
    exported = tmp_path / "out.csv"
    assert place.assay("labels", "export", str(exported)).stdout.startswith("0 labels added")
    assert place.assay("labels", "export", str(exported), *wanted).stdout == (
        f"1 label added to {exported}\n"
    )
    assert f"{case},fail,{run}" in exported.read_text()
    assert place.assay("labels", "export", str(exported), *wanted).stdout.startswith("0 labels")


def test_mistakes_end_with_exit_code_2(place: Any, tmp_path: Path) -> None:
    place.run()
    missing = place.assay("labels", "import", str(tmp_path / "none.csv"), code=2)
    assert "none.csv does not exist" in missing.stderr
    wrong = place.assay("labels", "export", str(tmp_path / "labels.txt"), code=2)
    assert "must end in .csv or .jsonl" in wrong.stderr
