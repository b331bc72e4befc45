# SPDX-License-Identifier: Apache-2.0
"""A stream of setpoints through the control loop, with its checks and its watchdog: nothing non-finite comes out."""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from byte_values import ByteValues

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.control.fields import BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import CHECK_POLICIES, LIMIT_POLICIES, LOSS_POLICIES

from .promises import refused

ROBOTS = ("sea_planar_2r", "vsa_planar_2r", "planar_pr", "dual_arm")
TOKENS = ()

_MOST_SETPOINTS = 12


def check(data: bytes) -> None:
    values = ByteValues(data)
    host = _host(values.choice(ROBOTS))
    policies = {name: values.choice(CHECK_POLICIES) for name in ("stamp_check", "jump_check")}
    host.configure(on_setpoint_loss=values.choice(LOSS_POLICIES), **policies)
    host.configure(limits=values.choice(LIMIT_POLICIES))
    host.loop.restart()
    stamp = 1_000_000_000
    for _ in range(_MOST_SETPOINTS):
        if not values.left:
            return
        stamp += values.choice((1, 1, 1, 0, -1, 200, 10**9)) * 1_000_000
        sent = values.choice((stamp, stamp, stamp, 0))
        with refused():
            host.read(_setpoint(values, host.arm.robot))
            host.answer(sent, stamp)
        _check_finite(host)
        host.suspicion()
        if values.below(8) == 7:
            host.loop.act("lose")
            for k in range(values.below(4)):
                with refused():
                    host.responded(host.loop.update(stamp + k * 20_000_000))
                _check_finite(host)


def _check_finite(host: SetpointLoop) -> None:
    for vectors in (host.loop.command, host.loop.sent):
        for name, numbers in vectors.items():
            assert np.isfinite(numbers).all(), name


@cache
def _host(name: str) -> SetpointLoop:
    host = SetpointLoop(SetpointEvaluator(ElasticArm(replace(load_robot(name), moving_base=True))))
    host.configure(setpoint_timeout=0.05, stop_duration=0.05)
    return host


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
