"""Modules and style sheets in one piece."""

from __future__ import annotations

import re

import pytest

from assay.web import modules
from assay.web.environment import static_files
from assay.web.modules import bundle, style

_DECLARED = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def test_a_bundle_has_each_module_once_after_those_that_it_needs() -> None:
    text = bundle("report.js")
    assert not re.search(r"^(?:import|export)\b", text, re.MULTILINE)
    assert text.count("function parseFilter(") == 1
    assert text.index("function parseFilter(") < text.index("class Report ")


def test_modules_of_a_bundle_do_not_share_names() -> None:
    names = _DECLARED.findall(bundle("report.js"))
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_styles_have_all_rules() -> None:
    assert "--accent" in style()
    assert ".grid-row" in style()


@pytest.mark.parametrize("text", ["a</script >", "</STYLE>", "<!-- x"])
def test_a_text_that_would_end_its_element_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = static_files() | {"bad.js": text.encode()}
    monkeypatch.setattr(modules, "static_files", lambda: changed)
    with pytest.raises(AssertionError):
        bundle("bad.js")
