# SPDX-License-Identifier: Apache-2.0
"""Answers of a node to a plan of the demo."""

import numpy as np

from eom_dynamics.tools.cli.demo import Plan


def recorded(plan: Plan, lost: int = 0, lateness: float = 3e-4) -> dict[str, np.ndarray]:
    """Return the answers of a node without faults, except the first ``lost``, ``lateness`` s after each setpoint."""
    answers = {field: np.array(x) for field, x in plan.feedforward.items()}
    answers["round_trip"] = np.full(len(plan.t), lateness)
    for values in answers.values():
        values[:lost] = np.nan
    return {**answers, "sent": 12.5 + plan.t}
