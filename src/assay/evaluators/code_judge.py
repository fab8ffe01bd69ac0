"""`code_judge`: the author's program gives the score."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import AfterValidator, ValidationInfo

from assay.errors import EvalFileErrors, nearest
from assay.evaluators.programs import missing_program
from assay.evaluators.verdict import shortened, wrong_key
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec, MissingDependency
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.model.script import Script
from assay.process.child import FinishedProcess, Limits, run, signal_name
from assay.process.cpu_slots import cpu_slot
from assay.redaction import Redactor, cut
from assay.settings import HARMLESS, environment
from assay.wire.fields import Empty, Json, Positive, Text
from assay.wire.json import parse
from assay.wire.key_names import KeyNames
from assay.wire.validation_context import Note, ValidationContext
from assay.wire.validation_errors import problem, shown


def _folder(value: str, info: ValidationInfo) -> str:
    context: ValidationContext | None = info.context
    return value if context is None else str(context.find_folder(value))


def _typo_hint(key: str, known: frozenset[str]) -> str:
    """A hint if the key resembles one of ours: a near miss, a prefix, or `env` written out."""
    if nearest(key, ["environment"], 0.75):
        return "did you mean 'env'?"
    completions = [name for name in known if len(key) >= 3 and name.startswith(key)]
    return nearest(key, completions, 0) or nearest(key, known, 0.75)


class _OpenKeyNames(KeyNames):
    """Unknown keys are the program's own configuration, unless they look like a typo."""

    __slots__ = ()

    def canonical(self, raw: Any, context: ValidationContext | None) -> Any:
        if type(raw) is not dict or self.known.issuperset(raw):
            return raw
        names = {key: key for key in raw if key in self.known}
        if (script := self.effective_spelling(raw, "script")) in raw:
            names[script] = "script"
        own = {key: value for key, value in raw.items() if key not in names}
        for key in own:
            hint = _typo_hint(key, self.known)
            if hint and not key.startswith("x-"):
                message = f"the key {key!r} looks like a typo"
                if context is None:
                    raise problem("unknown-key", message, hint)
                context.notes.append(Note(raw, key, "error", "unknown-key", message, hint))
        result: dict[str, Any] = {name: raw[key] for key, name in names.items()}
        given = result.get("config", {})
        if isinstance(given, dict):
            result["config"] = {**own, **given}
        return result

    def describe(self, body: dict[str, Any]) -> None:
        super().describe(body)
        body["additionalProperties"] = True


class CodeJudgeEvaluator(EvaluatorSpec):
    """Runs a program: the case and the observation go in as JSON, a score comes out."""

    type: str = "code_judge"
    script: Script
    cwd: Annotated[Text, AfterValidator(_folder)] | None = None
    timeout_seconds: Positive = 60.0
    env: list[Text] = Empty(list)
    max_memory_mb: Positive | None = None
    max_cpu_seconds: Positive | None = None
    config: dict[str, Json] = Empty(dict)

    def runs_in(self) -> CheckPlace:
        return "loop"

    def fingerprint(self) -> bytes:
        """Without `cwd`, which differs from machine to machine."""
        return self.settings_but({"name", "cwd"})

    def missing_dependencies(self, folder: str) -> Iterator[MissingDependency]:
        return missing_program(self.script, self.cwd or folder)

    async def evaluate(self, context: Context) -> EvaluationScore:
        return await ask_program(
            self.script,
            contract(context) | {"config": self.config},
            cwd=self.cwd or context.case.folder,
            env=self.env,
            limits=Limits(
                timeout_seconds=self.timeout_seconds,
                max_memory_mb=self.max_memory_mb,
                max_cpu_seconds=self.max_cpu_seconds,
            ),
        )


CodeJudgeEvaluator.key_names = _OpenKeyNames(CodeJudgeEvaluator.key_names.known, any_key=True)
CodeJudgeEvaluator.key_names.add("command", "script")


def contract(context: Context) -> dict[str, Any]:
    """The payload of a program: our keys in snake_case, the author's data unchanged."""
    case, observation = context.case, context.observation
    parts = [p for m in case.input_messages if isinstance(m.content, tuple) for p in m.content]
    return {
        "question": case.question,
        "expected_outcome": case.expected_outcome or "",
        "input_messages": [m.to_dict() for m in case.input_messages],
        "expected_messages": [m.to_dict() for m in case.expected_messages],
        "reference_answer": Message("assistant", case.expected_output).text,
        "candidate_answer": observation.response,
        "output_messages": [m.to_dict() for m in _output_messages(observation)],
        "trace_summary": _trace_summary(observation),
        "input_files": [os.path.abspath(p.path or p.value) for p in parts if p.type == "file"],
        "metadata": dict(case.metadata),
    }


def _output_messages(observation: Observation) -> tuple[Message, ...]:
    calls = observation.tool_calls or ()
    return observation.messages or (Message("assistant", observation.response, calls),)


def _trace_summary(observation: Observation) -> dict[str, Any]:
    """What the target did not report is null."""
    calls, usage = observation.tool_calls, observation.usage
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens} if usage else {}
    by_name = None if calls is None else dict(Counter(call.tool for call in calls))
    return {
        "event_count": None if calls is None else len(calls),
        "tool_names": None if by_name is None else sorted(by_name),
        "tool_calls_by_name": by_name,
        "error_count": None if calls is None else sum(map(_failed, calls)),
        "token_usage": {k: v for k, v in tokens.items() if v is not None} or None,
        "cost_usd": observation.cost_usd,
        "duration_ms": observation.duration_ms,
    }


def _failed(call: ToolCall) -> bool:
    return call.success is False or call.error is not None


async def ask_program(
    script: Sequence[str],
    payload: Mapping[str, Any],
    *,
    cwd: str,
    env: Iterable[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> EvaluationScore:
    """The score that a program prints, given the payload as JSON on stdin.

    `env` names the variables that it may see in addition to the harmless ones.
    """
    try:
        stdin = json.dumps(payload, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return EvaluationScore.errored(f"the program was not run: its input is not JSON: {error}")
    own = environment(env)
    async with cpu_slot():
        done = await run(
            script, stdin=stdin, cwd=cwd, env=environment(HARMLESS) | own, limits=limits
        )
    done = _redacted(done, frozenset(own.values()))
    return _broken(done, done.fault) if done.fault else _printed_score(done)


def _redacted(done: FinishedProcess, secrets: frozenset[str]) -> FinishedProcess:
    """The program's output without the values of the variables that it was given."""
    if not secrets:
        return done
    redactor, text = _redactor(secrets), done.stderr_tail.decode("utf-8", "replace")
    stderr = redactor.end(text, len(text), start_missing=done.start_missing).encode()
    # Escapes in JSON may hide a secret, but the program may have printed something else.
    printed = redactor.text(redactor.encoded(done.stdout).decode("utf-8", "surrogateescape"))
    stdout = printed.encode("utf-8", "surrogateescape")
    return replace(done, stdout=stdout, stderr_tail=stderr)


_redactor = lru_cache(maxsize=100)(Redactor)


def _printed_score(done: FinishedProcess) -> EvaluationScore:
    """The score in the program's output; unknown keys are ignored."""
    if not done.stdout.strip():
        return _broken(done, "printed nothing")
    try:
        document = parse(done.stdout.decode("utf-8-sig"), "stdout")
        reply, problems = document.data, document.problems
    except UnicodeDecodeError as error:
        return _broken(done, f"printed something that is not UTF-8: {error.reason}")
    except EvalFileErrors as error:
        reply, problems = None, list(error.problems)
    if problems:
        return _broken(done, f"printed invalid JSON: {problems[0].place}: {problems[0].message}")
    fault = _reply_fault(reply)
    if fault:
        return _broken(done, fault)
    words = shortened({key: reply.get(key) for key in ("hits", "misses", "reasoning")})
    return EvaluationScore(
        reply["score"],
        hits=tuple(words["hits"] or ()),
        misses=tuple(words["misses"] or ()),
        reasoning=words["reasoning"] or "",
        details=reply.get("details") or {},
    )


def _reply_fault(reply: Any) -> str:
    """What is wrong with a reply; empty if nothing is."""
    if not isinstance(reply, dict):
        return f"printed {shown(reply)}, not an object with a 'score'"
    if "score" not in reply:
        found = ", ".join(map(shown, list(reply)[:5])) or "none"
        return f"printed an object without 'score'; its keys: {found}"
    if wrong := wrong_key(reply):
        key, right = wrong
        return f"printed {shown(reply[key])} as {key!r}, not {right}"
    details = reply.get("details")
    if details is not None and not isinstance(details, dict):
        return f"printed {shown(details)} as 'details', not an object"
    return ""


def _broken(done: FinishedProcess, fault: str) -> EvaluationScore:
    """An errored score, with details to debug the program."""
    details: dict[str, Any] = {"state": done.state}
    if done.returncode is not None:
        if done.returncode >= 0:
            details["exit_code"] = done.returncode
        else:
            details["signal"] = signal_name(-done.returncode)
    if done.stderr:
        details["stderr"] = done.stderr
    if done.stdout:
        details["stdout"] = cut(done.stdout.decode("utf-8", "replace"), 1000)
    words = fault if done.state == "not_started" else f"the program {fault}"
    return EvaluationScore.errored(done.explained(words), **details)
