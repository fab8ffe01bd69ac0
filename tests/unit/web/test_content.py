"""Text of agents becomes HTML in which nothing of theirs is markup."""

from __future__ import annotations

import json
import time

import pytest

from assay.web.content import answer_html, json_tree, markdown, visible
from strict_html import assert_strict

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# Title", '<p class="heading-1"><strong>Title</strong></p>'),
        ("- a\n* b", "<ul><li>a</li><li>b</li></ul>"),
        ("1. a\n2) b", "<ol><li>a</li><li>b</li></ol>"),
        ("> a\n> b", "<blockquote>a<br>b</blockquote>"),
        ("a\nb\n\nc", "<p>a<br>b</p><p>c</p>"),
        ("```py\nx < 1\n```\nafter", "<pre>x &lt; 1</pre><p>after</p>"),
        ("```\nnever closed", "<pre>never closed</pre>"),
        (
            "`a<b` **bold** *em* 2 * 3",
            "<p><code>a&lt;b</code> <strong>bold</strong> <em>em</em> 2 * 3</p>",
        ),
        (
            "[here](javascript:alert(1))",
            "<p>[here](javascript:alert(1))</p>",
        ),
        ("[a](http://x)", '<p>a <span class="address">(http://x)</span></p>'),
        ("![a](http://x)", '<p>a <span class="address">(http://x)</span></p>'),
        (
            "|a|b|\n|-|-|\n|1|2|",
            '<div class="scroll"><table><thead><tr><th scope="col">a</th><th scope="col">b</th>'
            "</tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>",
        ),
        ("a | b", "<p>a | b</p>"),
        ("", ""),
    ],
)
def test_a_subset_of_markdown_is_drawn(text: str, html: str) -> None:
    assert markdown(text) == html


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        f"# {HOSTILE}",
        f"- {HOSTILE}",
        f"> {HOSTILE}",
        f"```{HOSTILE}\n{HOSTILE}",
        f"`{HOSTILE}` **{HOSTILE}** *{HOSTILE}*",
        f"[{HOSTILE}]({HOSTILE.replace('(', '').replace(')', '')})",
        f"|{HOSTILE}|\n|-|\n|{HOSTILE}|",
        json.dumps({HOSTILE: [HOSTILE]}),
        HOSTILE * 5000,
    ],
)
def test_nothing_of_the_text_is_markup(text: str) -> None:
    drawn = answer_html(text)
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert_strict(f"<div>{drawn}</div>", page=False)


def test_json_is_a_tree() -> None:
    drawn = answer_html('{"a": [1, null, "x"], "b": {}}')
    assert drawn.startswith('<ul class="tree"><li><details open><summary class="key">{2}</summary>')
    assert '<span class="key">1:</span> null' in drawn
    assert "&quot;x&quot;" in drawn
    assert_strict(drawn, page=False)
    assert "and 500 more" in json_tree(list(range(1000)))
    assert answer_html("[1, 2") == "<p>[1, 2</p>"
    assert answer_html("[" * 50_000) != ""


def test_what_hides_or_reverses_text_is_written_out() -> None:
    assert visible("a\u202eb\x1b[31m\tc\nd\u00a0e👩\u200d💻\r") == (
        "a\\u202eb\\x1b[31m\tc\nd\u00a0e👩\u200d💻"
    )


@pytest.mark.parametrize("piece", ["[", "*", "`", "**a", "[a](", "|", "- ", "> ", "```\n"])
def test_hostile_text_takes_no_time(piece: str) -> None:
    before = time.process_time()
    answer_html(piece * (99_000 // len(piece)))
    answer_html((piece * 1000 + "\n") * (90 // len(piece)))
    assert time.process_time() - before < 5


@pytest.mark.parametrize("text", ["~" * 99_000 + "`", "a|b\n" + "-" * 99_000 + "x"])
def test_a_line_that_is_almost_a_mark_takes_no_time(text: str) -> None:
    before = time.process_time()
    answer_html(text)
    assert time.process_time() - before < 5
