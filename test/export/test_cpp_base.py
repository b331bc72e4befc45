# SPDX-License-Identifier: Apache-2.0
"""The loop of a robot's library on a moving base: the commands of the node's solver, and what is refused."""

import shutil

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot
from exported_loop import Loop

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.messages.joint_order import JointOrders
from eom_dynamics.messages.setpoint_to_command import SetpointEvaluator
from eom_dynamics.messages.spatial import base_of_rows

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

START = 1_700_000_000_000_000_000


def motion(k: int) -> Array:
    t = k * 1e-3
    return np.outer([0.1 + t, 1 + 2 * t, 2 - t, -1, 5], [1, 1])


def base_at(k: int) -> Array:
    return 0.5 * np.sin(5e-3 * k + np.arange(21.0).reshape(7, 3)) + [[0], [0], [0], [0], [9.81], [0], [0]]


def test_the_loop_on_a_moving_base() -> None:
    """With a lead and a payload that changes; what remains when it is switched off; free fall and linearization."""
    arm = robot("sea_planar_2r")
    elastic, loop = eom.ElasticArm(arm), Loop(arm, moving_base=True)
    order, solver = JointOrders(elastic).of([]), SetpointEvaluator(elastic, lead=2.5e-3)
    loop.configure(lead=2.5e-3)
    for k in range(40):
        if k == 10:
            loop.carry(0.3, [0.1, 0, 0], 0.01, 0.02)
            solver.payload.change(eom.Payload(0.3, [0.1, 0, 0], 0.01 * np.eye(3)), 0.02)
        now, base = START + k * 10**6, base_at(k) if k != 20 else None
        solver.clock = lambda now=now: now
        given = None if base is None else base_of_rows(base)
        y = loop.cycle(now, motion(k), base=base)
        command = solver.command(order, motion(k), base=given, stamp=now, limit_policy="ignore")
        solver.commit()
        wanted = np.concatenate([command.efforts.ravel(), command.motors.ravel()])
        rows = y.tau, y.taud, y.taudd, y.motor_position, y.motor_velocity, y.motor_acceleration, y.feedforward
        np.testing.assert_allclose(np.concatenate(rows), wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
        at_rest = np.zeros_like(motion(k))
        at_rest[0] = motion(k)[0]
        held = solver.command(order, at_rest, base=given, payload=command.payload[:1], limit_policy="ignore")
        np.testing.assert_allclose(y.released, held.motors[-1], rtol=1e-12)
    falling = base_at(0)
    falling[4] = 0.0
    refused = loop.cycle(now, motion(0), base=falling)
    assert refused.status == 1 and refused.refusal.name == "free_fall"
    loop.configure(lead=0.0, linearize=True)
    assert loop.cycle(now, motion(0), base=base_at(0)).refusal.name == "moving_base"
