"""Templates escape all values, and static files have an address that changes with them."""

from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError

from assay.web.environment import draw, environment, moment, static_files, static_url

HOSTILE = "\"'><script>alert(1)</script>"
IMPORT = (
    "{% from 'macros.html' import verdict, facts, panel, badge, tags, chips, aligned_calls,"
    " word_diff, pager, copyable %}"
)
ROW = {"sign": "~", "expected": [(HOSTILE, True)], "actual": [(HOSTILE, False)], "note": HOSTILE}


@pytest.mark.parametrize(
    "use",
    [
        "{% call verdict('worse', x, x, [(x, x)]) %}{{ x }}{% endcall %}",
        "{{ facts([(x, x)]) }}",
        "{% call panel(x, x) %}{{ x }}{% endcall %}",
        "{{ badge('failed', x) }}",
        "{{ tags([x]) }}",
        "{{ chips([(x, 1, x, True)], x) }}",
        "{{ aligned_calls([row], (x, x)) }}",
        "{{ word_diff([('=', x), ('-', x), ('+', x)]) }}",
        "{{ pager(x, x, x) }}",
        "{{ copyable('id', x, x) }}",
    ],
)
def test_every_macro_escapes_what_it_is_given(use: str) -> None:
    drawn = environment().from_string(IMPORT + use).render(x=HOSTILE, row=ROW)
    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn
    assert "\"'" not in drawn


def test_a_name_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        draw("login.html", {})


def test_times_are_written_for_people() -> None:
    assert moment("2026-01-05T09:02:03.000Z") == "5 Jan 2026, 09:02 UTC"
    assert moment("yesterday") == "yesterday"


def test_modules_import_only_modules_that_exist() -> None:
    files = static_files()
    for name, content in files.items():
        if name.endswith(".js"):
            imported = re.findall(r'from "\./([^"]+)"', content.decode())
            assert set(imported) <= set(files), name


def test_no_module_makes_elements_of_text() -> None:
    """The policy forbids it in browsers that know trusted types; others must be as safe."""
    made = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    assert [name for name, content in static_files().items() if made.search(content.decode())] == []


def test_the_address_of_a_static_file_has_its_version() -> None:
    assert re.fullmatch("/static/[0-9a-f]{12}/assay.css", static_url("assay.css"))
