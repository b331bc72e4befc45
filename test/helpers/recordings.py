# SPDX-License-Identifier: Apache-2.0
"""What a node would have answered to a plan of the demo."""

from __future__ import annotations

import numpy as np

from eom_dynamics.demo.evaluate import Recording
from eom_dynamics.demo.plan import Plan
from eom_dynamics.stream.conversions import COMMAND_FIELDS


def recorded(plan: Plan, lost: int = 0) -> Recording:
    """Its answers, but for the first ``lost`` of them."""
    wrench = [W.reshape(-1, *plan.robot.wrench_shape) for W in plan.wrench.derivatives(plan.t, order=2)]
    command = plan.arm.feedforward(*plan.motion.derivatives(plan.t), wrench=wrench)
    answers = {field: np.array(values) for field, values in zip(COMMAND_FIELDS, command, strict=True)}
    received = plan.t + 3e-4
    received[:lost] = np.nan
    for values in answers.values():
        values[:lost] = np.nan
    return Recording(plan.t, received, answers, "numpy")
