# SPDX-License-Identifier: Apache-2.0
"""A stream of setpoints through the checks of the node, its watchdog and its solver: nothing non-finite comes out."""

from __future__ import annotations

from array import array
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from byte_values import ByteValues

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.messages.fields import BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.messages.setpoint_to_command import LIMIT_POLICIES, EvaluatedCommand, SetpointEvaluator
from eom_dynamics.stream.doubts import DOUBT_POLICIES, Doubts, DoubtSettings
from eom_dynamics.stream.watchdog import LOSS_POLICIES, Settings, Watchdog

from .refusals import refused

ROBOTS = ("sea_planar_2r", "vsa_planar_2r", "planar_pr", "dual_arm")
TOKENS = ()

_MOST_SETPOINTS = 12


def check(data: bytes) -> None:
    """Stream setpoints of any bytes."""
    values = ByteValues(data)
    arm = _arm(values.choice(ROBOTS))
    solver = SetpointEvaluator(arm)
    policies = [values.choice(DOUBT_POLICIES) for _ in range(3)]
    doubts = Doubts(arm, DoubtSettings(*policies, window=4))
    watchdog = Watchdog(arm, Settings(values.choice(LOSS_POLICIES), 0.05, stop_duration=0.05, ramp_duration=0.1))
    limits, stamp = values.choice(LIMIT_POLICIES), 1_000_000_000

    def admit(stamp: int, state: Any) -> None:
        watchdog.admit(state[0])
        doubts.judge(stamp, state)

    for _ in range(_MOST_SETPOINTS):
        if not values.left:
            return
        stamp += values.choice((1, 1, 1, 0, -1, 200, 10**9)) * 1_000_000
        sent = values.choice((stamp, stamp, stamp, 0))
        with refused():
            solution = solver.evaluate(_setpoint(values, arm.robot), stamp=sent, limit_policy=limits, admit=admit)
            _check_finite(solution)
            solver.commit()
            watchdog.feed(solution)
            doubts.answered(sent, solution.state)
        if values.below(8) == 7:
            _lose(solver, watchdog, stamp, values.below(4))


def _lose(solver: SetpointEvaluator, watchdog: Watchdog, stamp: int, count: int) -> None:
    """Setpoints stop for some periods."""
    with refused():
        if not watchdog.lose("fuzzed"):
            return
    for k in range(count):
        response = watchdog.respond(stamp + k * 20_000_000)
        assert watchdog.last is not None
        with refused():
            solution = solver.command(watchdog.last.order, *response.flow, stamp=0, limit_policy="warn")
            _check_finite(response.fade.of(solution) if response.fade else solution)
            solver.commit()
            watchdog.commit(response)


def _check_finite(solution: EvaluatedCommand) -> None:
    for field, numbers in solution.fields().items():
        assert np.isfinite(numbers).all(), field


@cache
def _arm(name: str) -> ElasticArm:
    return ElasticArm(load_robot(name))


def _setpoint(values: ByteValues, robot: Robot) -> Any:
    names = list(robot.joint_names)
    kind = values.below(16)
    if kind >= 13:
        names = {13: names[::-1], 14: [], 15: [*names[:-1], values.text()]}[kind]
    fields: dict[str, Any] = {name: _numbers(values, robot.n) for name in STATE_FIELDS}
    extras = values.below(16)
    wrenches, stiffness, base = extras == 15, extras in (12, 13, 14, 15), extras in (11, 15)
    for name in STIFFNESS_FIELDS:
        fields[name] = _numbers(values, robot.n) if stiffness else array("d")
    for name in WRENCH_FIELDS:
        count = values.length(len(robot.tools)) if wrenches else 0
        fields[name] = np.array(values.numbers(6 * count)).reshape(count, 6)
    rows = [np.array(values.numbers(int(np.prod(BASE_SHAPE)))).reshape(BASE_SHAPE)] * values.length(1) if base else []
    return SimpleNamespace(joint_names=names, base=rows, **fields)


def _numbers(values: ByteValues, n: int) -> array[float]:
    return array("d", values.numbers(values.length(n)))
