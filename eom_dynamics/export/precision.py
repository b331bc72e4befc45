# SPDX-License-Identifier: Apache-2.0
"""Single precision: C and C++ in ``float``, from code in ``double``.

Constants are those of double precision, rounded. Comments remain as they are.
"""

from __future__ import annotations

import re

PRECISIONS = ("double", "single")
"""Precisions of exported C and C++."""

_COMMENT = r"/\*.*?\*/|//[^\n]*"
_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBER = r"(?<![\w.])(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])"
_FUNCTIONS = (
    *("sin", "cos", "sinh", "cosh", "tanh", "asinh", "exp", "expm1", "log", "pow", "sqrt"),
    *("fabs", "fmin", "fmax", "copysign"),
)
_TOKEN = re.compile(
    rf"(?P<kept>{_COMMENT}|{_STRING})|(?P<number>{_NUMBER})|(?P<type>\bdouble\b)"
    rf"|(?P<function>\b(?:{'|'.join(_FUNCTIONS)})(?=\())",
    re.DOTALL,
)


def in_single_precision(code: str) -> str:
    """Code with ``float``, its constants, and its functions of ``math.h``."""
    return _TOKEN.sub(_single, code)


def _single(match: re.Match[str]) -> str:
    if match["number"] or match["function"]:
        return f"{match.group()}f"
    return "float" if match["type"] else match.group()
