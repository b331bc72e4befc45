# SPDX-License-Identifier: Apache-2.0
"""Measured velocities: those beyond limits or contradicted by positions are left out, true ones are not."""

from collections.abc import Callable

import numpy as np
import pytest

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable

NOW = 10**12
HOMES = {"panda": [0, -0.5, 0, -1.5, 0, 1.5, 0.5], "iiwa": [0, 0.8, 0, -1.0, 0, 0.5, 0], "vsa_planar_2r": [-1.4, 0.3]}


def loop(robot: str, **settings: object) -> tuple[ControlLoop, Array]:
    """A loop that holds a robot, and the positions of its motors."""
    x, q = ControlLoop(RobotTable(ElasticArm(load_robot(robot)))), np.array(HOMES[robot], dtype=float)
    x.configure(safety="strict", setpoint_timeout=0.0, on_setpoint_loss="none", stiffness=[100.0], **settings)
    x.restart(q)
    return x, x.sent["drive_position"].copy()


@pytest.mark.parametrize("side", ["links", "motors"])
@pytest.mark.parametrize("rate", [2.5, 5.0, 20.0])
def test_restart_at_a_velocity_beyond_limits_is_refused(side: str, rate: float) -> None:
    """One sample of a motor at 20 rad/s sent a panda 12.6 rad away."""
    (x, motors), velocity = loop("panda"), np.zeros(7)
    velocity[1] = rate
    position = np.array(HOMES["panda"]) if side == "links" else motors
    x.measure(**{"q" if side == "links" else "motors": np.stack([position, velocity])})
    reason = x._library.loop_restart(x.address, NOW)
    assert not x.number("valid")
    assert b"fer_joint2: measured velocity %.2g" % rate in reason and b"rad/s, limit " in reason


@pytest.mark.parametrize("robot", HOMES)
@pytest.mark.parametrize("mode", ["position", "impedance", "gravity_compensation"])
@pytest.mark.parametrize("rate", [1.5, 20.0])
def test_one_wrong_velocity_leaves_efforts_as_they_were(robot: str, mode: str, rate: float) -> None:
    """Within the limit or beyond, at rest; it was sent the largest effort of the motor.

    Motors with feedback, in position mode and of variable stiffness, are away from their references.
    """
    x, motors = loop(robot, motor_kp=[100.0], motor_kd=[2.0])
    motors += 0.01 * (-1.0) ** np.arange(len(motors))
    sent = []
    for k in range(900):
        if k == 150 and mode != "position":
            x.change_mode(mode)
        velocity = np.zeros(len(motors))
        velocity[1] = rate * (k == 800)
        x.measure(motors=np.stack([motors, velocity]))
        x._library.loop_run(x.address, NOW + k * 1_000_000, 1e-3)
        sent.append(x.sent["drive_effort"].copy())
    assert (x.number("unmeasured") == 1) == (x.number("mode") > 0) == (mode != "position")
    np.testing.assert_allclose(sent[800], sent[799], atol=1e-6)


def swing(t: float) -> tuple[float, float]:
    """A motion at up to 1.9 rad/s and 7.6 rad/s²."""
    return 0.475 * np.sin(4 * t), 1.9 * np.cos(4 * t)


STREAMS: dict[str, Callable[[np.random.Generator, float, int], tuple[float, float, float]]] = {
    # By a random generator, the time and number of a sample: times of measuring and reading, and noise of velocity.
    "plain": lambda random, t, k: (t, t, 0.0),
    "noise": lambda random, t, k: (t, t, 0.06),
    "stale": lambda random, t, k: (1e-3 * (k // 4 * 4), t, 0.0),
    "late": lambda random, t, k: (t - 0.004 * random.random(), t, 0.0),
    "clock": lambda random, t, k: (t, t + 0.05 * (k > 500), 0.0),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("tick", [0.0, 1.5e-4, 1.5e-3])
def test_true_velocities_are_measurements(stream: str, tick: float) -> None:
    """With noise, encoder ticks, repeated and late samples, and a jump of the clock."""
    x, motors = loop("panda", jump_check="ignore")
    random, faults = np.random.default_rng(1), []
    for k in range(2000):
        at, read, noise = STREAMS[stream](random, 1e-3 * k, k)
        position, velocity = swing(at)
        rows = np.stack([motors, np.zeros(7)])
        rows[:, 0] += [
            np.round(position / tick) * tick if tick else position,
            velocity + noise * random.standard_normal(),
        ]
        x.measure(motors=rows)
        x._library.loop_run(x.address, NOW + round(1e9 * read), 1e-3)
        if text := x.text("measurement"):
            faults.append((k, text))
    assert not faults


@pytest.mark.parametrize("lowest", [0.25e-3, 8e-3])
def test_true_velocities_are_measurements_with_any_period(lowest: float) -> None:
    x, motors = loop("panda", jump_check="ignore")
    random, t, faults = np.random.default_rng(2), 0.0, []
    for k in range(1000):
        t += random.uniform(lowest, 8e-3)
        rows = np.stack([motors, np.zeros(7)])
        rows[:, 0] += swing(t)
        x.measure(motors=rows)
        x._library.loop_run(x.address, NOW + round(1e9 * t), 4e-3)
        if text := x.text("measurement"):
            faults.append((k, text))
    assert not faults


def test_a_velocity_that_positions_contradict_for_long_is_no_measurement() -> None:
    """Of a joint without a limit, too; the reason names the joint, the velocity and the change of positions."""
    for robot in ("panda", "planar_2r"):
        table = RobotTable(ElasticArm(load_robot(robot)))
        x = ControlLoop(table)
        x.restart(np.array(HOMES.get(robot, [0.3, 0.2]), dtype=float))
        motors, texts = x.sent["drive_position"].copy(), []
        for k in range(200):
            velocity = np.zeros(len(motors))
            velocity[1] = min(k * 0.02, 2.0)  # without a step
            x.measure(motors=np.stack([motors, velocity]))
            x._library.loop_run(x.address, NOW + k * 1_000_000, 1e-3)
            texts.append(x.text("measurement"))
        assert "measured velocity 2 rad/s, but positions change by 0 rad/s" in texts[-1]
