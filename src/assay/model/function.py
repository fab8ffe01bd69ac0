"""References to functions of a project: `package.module:function`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from assay.wire.fields import Text
from assay.wire.validation_errors import problem

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
REFERENCE = f"{_NAME}:{_NAME}"


def check_reference(value: str) -> str:
    """The reference of a validated field, in the form above."""
    """The reference; a file of the project, `package/module.py:function`, is also accepted."""
    file, dot_py, function = value.partition(".py:")
    if dot_py:
        value = f"{file.removeprefix('./').replace('/', '.')}:{function}"
    if not re.fullmatch(REFERENCE, value):
        message = f"{value!r} does not have the form 'package.module:function'"
        raise problem("wrong-value", message)
    return value


Function = Annotated[Text, AfterValidator(check_reference)]
