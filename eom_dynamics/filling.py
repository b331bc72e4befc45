# SPDX-License-Identifier: Apache-2.0
"""Texts with fields, and constants with which Python and the control loop in C++ are filled in alike. Without NumPy."""

import re

SETTLED = 1e30
"""In place of a deflection: that without transient; of a state of friction: that of the velocity. A number of single
precision, too."""

TOLERANCE = 1e-9
"""Relative violation of a limit up to which it is rounding."""


def filled(template: str, **values: str) -> str:
    """The template with each ``@key@`` replaced by its value, without recursion."""
    return re.sub(r"@(\w+)@", lambda match: values.get(match.group(1), match.group()), template)
