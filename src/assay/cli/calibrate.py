"""`assay calibrate`: compare a judge with human labels."""

from __future__ import annotations

import click

from assay.cli.completion import files
from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.results.calibrations import FILE
from assay.service.calibration import (
    Answer,
    Calibrated,
    CalibrationSession,
    why_not_corrected,
)
from assay.stats.calibration import majority_baseline
from assay.stats.estimates import Estimate
from assay.text import count, printable

_KEYS = {"p": True, "pass": True, "f": False, "fail": False, "s": None, "skip": None}
_PROMPT = "p = pass, f = fail, s = skip, q = stop"
_WORDS = {
    "agreement": "both say the same",
    "kappa": "0 is guessing, 1 is full agreement",
    "sensitivity": "of the good answers, it passes",
    "specificity": "of the bad answers, it fails",
}


@click.command("calibrate")
@click.argument("labels", shell_complete=files)
@click.option("--run", default="latest", metavar="RUN", show_default=True, help="The judged run.")
@click.option("--evaluator", metavar="NAME", help="Whose judge, when the run has several.")
@click.option("--sample", type=click.IntRange(1), help="Ask for labels for this many answers.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Decides which answers (0).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@store_option
def command(
    labels: str,
    run: str,
    evaluator: str | None,
    sample: int | None,
    seed: int,
    as_json: bool,
    store: str | None,
) -> None:
    """Compare a judge with people: how far it can be trusted, and what its pass rate is worth.

    LABELS is a .csv or .jsonl file with `id`, `label` (pass or fail) and perhaps `suite`. With
    --sample you are shown random answers as the judge saw them, without its verdict, and your
    labels are added to the file one by one; call it again to continue. The result is kept in
    calibrations.json, and later runs with the same judge report the corrected pass rate. If
    you stop before the last answer, an earlier calibration stays as it is.

    \b
    Examples:
      assay calibrate labels.csv --sample 50
      assay calibrate labels.csv --run main --evaluator quality
      assay calibrate labels.jsonl --json
    """
    session = CalibrationSession(labels, run, evaluator, store=store, has_file=sample is None)
    complete = sample is None or _ask(session, sample, seed)
    if not complete and not session.has_labels:
        click.echo("stopped early: no label was added", err=True)
        return
    found = session.calibrate(complete=complete)
    if as_json:
        echo_json(found.to_dict())
    else:
        _print(found)
    _print_kept(found, complete=complete)


def _ask(session: CalibrationSession, sample: int, seed: int) -> bool:
    """Ask for labels one by one, on stderr: stdout is for the report. False if stopped early."""
    answers = session.unlabelled(sample, seed)
    for file in session.changed_files if answers else ():
        note = f"note: {file} changed since the run; criteria are shown as they are now"
        click.echo(printable(note), err=True)
    for number, answer in enumerate(answers, 1):
        _show(answer, f"{number} of {len(answers)}")
        reply = _reply()
        if reply == "q":
            return False
        passed = _KEYS[reply]
        if passed is not None:
            session.label(answer, passed)
    return True


def _show(answer: Answer, progress: str) -> None:
    click.echo("\n" + printable(f"[{progress}] {answer.ref}"), err=True)
    for line in answer.description.splitlines():
        click.echo(printable(f"  {line}"), err=True)
    for label, text in answer.pieces:
        for line in text.splitlines() or ["(empty)"]:
            click.echo(printable(f"  {label:11}{line}").rstrip(), err=True)
            label = ""


def _reply() -> str:
    """Prompt until the reply is valid; `q` at the end of the input."""
    while True:
        try:
            reply: str = click.prompt(_PROMPT, err=True, default="", show_default=False)
        except click.Abort:
            return "q"
        reply = reply.strip().lower()
        if reply in ("q", "quit"):
            return "q"
        if reply in _KEYS:
            return reply


def _print(found: Calibrated) -> None:
    table, judge = found.table, found.judge
    click.echo(printable(f"judge     {judge.evaluator} ({judge.judge}), id {judge.id}"))
    click.echo(f"run       {found.run_id}")
    here = table.n - found.earlier_labels
    click.echo(f"labels    {here:,} of {found.judged:,} answers that it judged")
    if found.earlier_labels:
        click.echo(f"          {found.earlier_labels:,} more of answers in other runs")
    if found.unknown:
        labels = count(found.unknown, "label belongs", "labels belong")
        click.echo(f"          {labels} to no such answer")
    click.echo()
    click.echo(f"{'':20}{'judge passes':>14}{'judge fails':>14}")
    click.echo(f"{'a person passes':20}{table.right_passes:>14,}{table.wrong_failures:>14,}")
    click.echo(f"{'a person fails':20}{table.wrong_passes:>14,}{table.right_failures:>14,}")
    click.echo()
    for name, words in _WORDS.items():
        click.echo(f"{name:12}  {_numbers(found.estimates[name]):24}{words}")
    most = majority_baseline(table) or 0.0
    click.echo(f"{'majority':12}  {most:<24.2f}agreement if it always said the same")
    click.echo()
    click.echo(f"{'pass rate':12}  {_numbers(found.estimates['passRate'])}")
    click.echo(f"{'corrected':12}  {_corrected(found)}")


def _print_kept(found: Calibrated, *, complete: bool) -> None:
    """Whether the calibration was written, or which one was left in its place."""
    stays = found.stays
    if stays is None:
        click.echo(f"kept in {FILE}", err=True)
        return
    labels = stays.table.n
    if complete:
        message = f"{FILE} keeps the calibration with {labels:,} labels from {stays.labels}"
        hint = "put all labels in one file to use them together"
    else:
        message = f"stopped early: {FILE} keeps the calibration with {labels:,} labels"
        hint = f"run `assay calibrate {found.file}` to use the new labels"
    click.echo(printable(f"{message}\n{hint}"), err=True)


def _numbers(found: Estimate | None) -> str:
    if found is None:
        return "not known"
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"


def _corrected(found: Calibrated) -> str:
    estimate = found.estimates["corrected"]
    return _numbers(estimate) if estimate else f"not known: {why_not_corrected(found.table)}"
