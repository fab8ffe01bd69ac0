"""`llm_judge`: one score for the whole answer, given by a judge."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace
from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from assay.errors import UsageError
from assay.evaluators.judge import Judge, JudgeFault, Question, Spending, closed
from assay.evaluators.preference import AnswerJudge
from assay.evaluators.prompt import (
    Material,
    material_of,
    read_by,
    read_prompt,
    task_of,
    unknown_variable,
)
from assay.evaluators.verdict import wrong_key
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.expectations import Expectation, Expected
from assay.model.score import EvaluationScore, verdict_of
from assay.model.tokens import RESULTS, VARIABLES
from assay.ports import Check, Resources
from assay.wire.fields import Samples, Text
from assay.wire.key_names import Key
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import problem, shown

_PROMPT_SUFFIXES = (".md", ".txt", ".prompt", ".j2", ".jinja", ".html", ".xml")


def _may_be_path(prompt: str) -> bool:
    return "\n" not in prompt and "{{" not in prompt and prompt.strip().endswith(_PROMPT_SUFFIXES)


def _may_be_words(prompt: str) -> bool:
    """Several words may be a question that ends with a file name: a path only if it exists."""
    return len(prompt.split()) > 1


def _resolve_path(prompt: str, context: ValidationContext) -> str:
    try:
        return str(context.find_file(prompt)) if _may_be_path(prompt) else prompt
    except PydanticCustomError as error:
        slug = (error.context or {}).get("slug")
        if slug == "file-not-found" and _may_be_words(prompt):
            return prompt
        raise


def _prompt(prompt: str, info: ValidationInfo) -> str:
    """The file that a prompt names must exist, and its variables must be known."""
    context: ValidationContext | None = info.context
    if context is None:
        return prompt
    prompt = _resolve_path(prompt, context)
    try:
        wrong = unknown_variable(prompt_text("", prompt), (*VARIABLES, *RESULTS))
    except UsageError as error:
        wrong = str(error).removeprefix(": ")
    if wrong:
        raise problem("wrong-value", wrong)
    return prompt


def prompt_text(owner: str, prompt: str) -> str:
    """The prompt itself, read from its file if it names one."""
    if not _may_be_path(prompt) or (_may_be_words(prompt) and not os.path.isfile(prompt)):
        return prompt
    return read_prompt(owner, prompt)


Prompt = Annotated[Text, AfterValidator(_prompt)]


class LlmJudgeEvaluator(EvaluatorSpec):
    """Asks a judge for a score; `prompt` is text or the path of a file with it."""

    allowed_in_requests: ClassVar[bool] = True
    version: ClassVar[int] = 2
    type: str = "llm_judge"
    prompt: Prompt | None = Key(None, aliases=("value",))
    model: Text | None = None
    target: Text | None = None
    samples: Samples = 1

    def runs_in(self) -> CheckPlace:
        return "loop"

    def reads_of(self, expected: Expected) -> frozenset[Expectation]:
        return read_by(self._prompt_text())

    def fingerprint(self) -> bytes:
        """With the text of the prompt, not the path of its file."""
        return self.settings_but({"name", "prompt"}) + self._prompt_text().encode()

    def instructions(self) -> bytes:
        settings = self.settings_but({"name", "weight", "required", "prompt"})
        return settings + self._prompt_text().encode()

    def judge_sees(self, context: Context) -> list[tuple[str, str]]:
        prompt = self._prompt_text()
        return [("prompt", prompt), *material_of(context).labelled(prompt)]

    def prepare(self, resources: Resources) -> Check:
        judge = Judge.find(resources, self.target, self.model)
        task = task_of(self.name, self._prompt_text())

        async def check(context: Context) -> EvaluationScore:
            material = material_of(context)
            return await vote(judge, task(material), material, context.repeat, self.samples)

        return check

    @staticmethod
    def comparing(resources: Resources, criteria: str) -> AnswerJudge:
        """The judge of preferences, which is asked about two answers instead of one."""
        return AnswerJudge(resources, criteria)

    def _prompt_text(self) -> str:
        return prompt_text(self.name, self.prompt or DEFAULT_PROMPT)


DEFAULT_PROMPT = """Judge how well the agent's answer does what the agent was asked to do.

If an expected outcome is given, judge how far the answer achieves it. If a reference answer is \
given, the answer must agree with it in substance; different wording is fine. Length, style and \
confidence alone earn no credit."""


class ScoreForm:
    """Asks for one score from 0 to 1 and the reasons for it."""

    described = """{"reasoning": "...", "hits": ["..."], "misses": ["..."], "score": 0.0}
`score` is a number from 0 (useless or wrong) to 1 (correct and complete). `hits` lists what the \
answer gets right and `misses` what it gets wrong or leaves out: at most four entries each, one \
short sentence per entry. `reasoning` is one or two sentences."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        keys = {"reasoning": {"type": "string"}, "hits": texts, "misses": texts}
        keys |= {"score": {"type": "number", "minimum": 0, "maximum": 1}}
        return closed(keys)

    def fault(self, reply: dict[str, Any]) -> str:
        if "score" not in reply:
            return "it has no 'score'"
        if wrong := wrong_key(reply):
            key, right = wrong
            return f"its {key!r} is {shown(reply[key])}, not {right}"
        return ""

    def take(self, reply: dict[str, Any]) -> str:
        self.reply = reply
        return ""

    def score(self) -> EvaluationScore:
        """The reply as a score."""
        reply = self.reply
        hits, misses = (
            tuple(t for t in reply.get(k) or () if t.strip()) for k in ("hits", "misses")
        )
        return EvaluationScore(
            reply["score"],
            hits=hits,
            misses=misses,
            reasoning=reply.get("reasoning") or "",
        )


async def vote(
    judge: Judge, task: str, material: Material, repeat: int = 0, samples: int = 1
) -> EvaluationScore:
    """The mean score of `samples` replies to the same question, asked concurrently."""
    spending = Spending()

    async def sample(number: int) -> EvaluationScore:
        form = ScoreForm()
        try:
            await judge.fill_in(Question(form, task, material, repeat, number), spending)
        except JudgeFault as fault:
            return judge.errored(fault, spending)
        return form.score()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(sample(number)) for number in range(samples)]
    votes = [task.result() for task in tasks]
    spent = judge.spent(spending)
    if len(votes) == 1:
        return replace(votes[0], details=votes[0].details | {"judge": spent})
    return _mean_of(votes, spent)


def _mean_of(votes: list[EvaluationScore], spent: dict[str, Any]) -> EvaluationScore:
    """The mean of the samples that gave a score; an error unless most of them did."""
    details: dict[str, Any] = {"samples": [_shown(vote) for vote in votes], "judge": spent}
    scored = [(vote.score, vote) for vote in votes if vote.score is not None]
    scores = [score for score, _ in scored]
    if len(scores) * 2 <= len(votes):
        reason = next(vote.error for vote in votes if vote.error)
        failed = len(votes) - len(scores)
        words = f"{failed} of {len(votes)} samples gave no score; first error: {reason}"
        return EvaluationScore.errored(words, **details)
    mean = sum(scores) / len(scores)
    usual, count = Counter(map(verdict_of, scores)).most_common(1)[0]
    details["agreement"] = count / len(scores)
    nearest = min(scored, key=lambda pair: abs(pair[0] - mean))[1]
    words = f"the verdict of {count} of {len(scores)} samples is {usual}"
    if len(scores) < len(votes):
        words += f", {len(votes) - len(scores)} of {len(votes)} gave no score"
    return EvaluationScore(
        mean,
        hits=nearest.hits,
        misses=nearest.misses,
        reasoning=f"{words}; closest to the mean: {nearest.reasoning or 'no reason given'}",
        details=details,
    )


def _shown(vote: EvaluationScore) -> dict[str, Any]:
    if vote.score is None:
        return {"error": vote.error}
    return {"score": vote.score, "verdict": vote.verdict, "reasoning": vote.reasoning}
