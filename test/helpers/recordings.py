# SPDX-License-Identifier: Apache-2.0
"""Answers of a node to a plan of the demo."""

from __future__ import annotations

import numpy as np

from eom_dynamics.messages.fields import COMMAND_FIELDS
from eom_dynamics.tools.demo.evaluate import Answers
from eom_dynamics.tools.demo.plan import Plan


def recorded(plan: Plan, lost: int = 0) -> Answers:
    """Return the answers of a node without faults, except the first ``lost``."""
    answers = {field: np.array(x) for field, x in zip(COMMAND_FIELDS, plan.command(plan.t), strict=True)}
    received = plan.t + 3e-4
    received[:lost] = np.nan
    for values in answers.values():
        values[:lost] = np.nan
    return Answers(plan.t, received, answers, "numpy")
