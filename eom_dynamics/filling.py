# SPDX-License-Identifier: Apache-2.0
"""Texts with fields, and constants shared by Python and the control loop in C++. Without NumPy."""

import re

SETTLED = 1e30
"""Sentinel: use the deflection without transient, or the friction state of the velocity. Also in single precision."""

TOLERANCE = 1e-9
"""Largest relative violation of a limit by rounding."""


def filled(template: str, **values: str) -> str:
    """Template with each ``@key@`` replaced by its value, without recursion."""
    return re.sub(r"@(\w+)@", lambda match: values.get(match.group(1), match.group()), template)
