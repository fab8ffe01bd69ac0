"""A project whose judge is too lenient: what people label on the page."""

from __future__ import annotations

from e2e.projects import Project

#: The judge says this of every answer, and the page shows it nowhere.
SECRET_OF_THE_JUDGE = "as-the-judge-sees-it"
_AGENT = """
import json

ORDERS = ["A100", "B7", "C42", "D8", "E15"]

def answer(message):
    number = int(message.split("#")[1].split("?")[0])
    order = ORDERS[number % 5]
    call = {"name": "find_order", "params": {"order": order}, "durationMs": 12}
    call["result"] = {"order": order, "amount": 40 + number, "paid": number % 3 != 0}
    polite = "I am sorry to hear that. " if number % 4 else ""
    text = f"{polite}Your order {order} is refunded: **{40 + number} EUR** within three days."
    return {"response": text if number % 5 else "No.", "toolCalls": [call]}

def judge(message):
    good = "is refunded" in message
    return json.dumps({"score": 0.9 if good else 0.2, "reasoning": "VERDICT-OF-THE-JUDGE"})
"""
_CONFIG = {
    "targets": [{"name": "agent", "provider": "python", "callable": "agent:answer"}],
    "judge": {"provider": "python", "callable": "agent:judge"},
    "defaults": {"target": "agent"},
}
#: How many answers the judge has judged, and how many of those it has passed.
ANSWERS, PASSED = 40, 32


def judged_project(project: Project) -> None:
    """Write the project, and run it."""
    project.write("agent.py", _AGENT)
    project.write("assay.yaml", _CONFIG)
    judge = {"type": "llm_judge", "name": "polite", "prompt": "Polite?\n{{candidate_answer}}"}
    cases = [
        {
            "id": f"refund-{number}",
            "input": f"Where is my refund for #{number}? It was promised last week.",
            "expected_outcome": "Says sorry, and names the amount and the day of the refund",
            "tags": ["refunds"],
            "evaluators": [judge],
        }
        for number in range(ANSWERS)
    ]
    project.write("evals/refunds.eval.yaml", {"cases": cases})
    project.run("run", "evals/", code=1)
