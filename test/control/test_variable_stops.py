# SPDX-License-Identifier: Apache-2.0
"""Stops of springs with commanded stiffness: within the speed of motors, to rest, from any stream that was followed."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from loop_rig import LoopRig, Record
from springs import with_springs

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators import springs as kinds
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable

SPEED = 5.0
"""Speed of the motors of vsa_planar_2r on the link side, rad/s."""

FASTER = 1.4
"""Excess of a stop from a setpoint that leads beyond limits itself: its acceleration lasts for averages of 20 ms."""

SPRINGS: dict[str, tuple[Any, float]] = {
    "variable": (kinds.VariableSpring(50.0, 2e3, 250.0), 50.0),
    "antagonistic_exponential": (kinds.ExponentialPair(50.0, 8.0, 250.0), 100.0),
    "antagonistic_quadratic": (kinds.QuadraticPair(30.0, 400.0, 150.0), 60.0),
}
"""All kinds with a commanded stiffness, and the least stiffness without load, N m/rad."""

DURATIONS = [0.01, 0.05, 0.1, 0.3, 1.0]


def test_all_kinds_with_a_commanded_stiffness_are_here() -> None:
    assert set(SPRINGS) == {kind for kind, spring in kinds.SPRINGS.items() if spring.is_variable}


@cache
def table_of(spring: str) -> RobotTable:
    robot: Robot = replace(load_robot("vsa_planar_2r"), moving_base=True)
    if spring in SPRINGS:
        robot = replace(with_springs(robot, SPRINGS[spring][0]), name=f"vsa_{spring}")
    return RobotTable(ElasticArm(robot))


def sine(t: float, size: Array, rate: Array, phase: Array) -> Array:
    """A sine with its rates (5, n)."""
    return np.array([size * rate**k * np.sin(rate * t + phase + k * np.pi / 2) for k in range(5)])


class Stop:
    """A stream that ends, and its stop.

    Attributes:
        refused: whether a setpoint of the stream was refused: it is no stream within limits.
        code, position, velocity, qd: of each cycle from the last setpoint on.
    """

    def __init__(self, spring: str, duration: float, given: Any, cycles: int) -> None:
        loop, now, rows = ControlLoop(table_of(spring)), 10**12, []
        loop.configure(safety="strict", stop_duration=duration, jump_check="ignore")
        run, self.refused = loop._library.loop_run, False
        for k in range(cycles + 6000):
            if k < cycles and not self.refused:
                vectors = given(1e-3 * k)
                loop.rest(on_base="w" in vectors)
                for name, values in vectors.items():
                    loop.given[name][:] = values
                if k == 0:
                    loop.restart(loop.given["q"].copy())
                loop.refer(now)
            code = run(loop.address, now, 1e-3)
            self.refused = self.refused or (k < cycles and code > 0)
            if k == 0:
                loop.configure(jump_check="refuse")
            if k >= cycles - 1:
                rows.append(
                    (
                        code,
                        *(loop.sent[f"drive_{x}"].copy() for x in ("position", "velocity")),
                        loop.setpoint["qd"].copy(),
                    )
                )
            now += 1_000_000
            if self.refused or (k > cycles + 150 and loop.number("status") == 1):
                break
        self.ends = loop.number("status") == 1
        self.code, self.position, self.velocity, self.qd = (
            (np.array(x) for x in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 4
        )

    def check(self) -> None:
        """Assert that motors keep their speed, and the arm does not halt in one cycle."""
        assert self.ends  # a command that cannot be computed begins the stop again
        assert np.abs(np.diff(self.position, axis=0)).max() <= 1e-3 * FASTER * SPEED
        assert np.abs(self.velocity).max() <= FASTER * SPEED
        assert np.abs(np.diff(self.qd, axis=0)).max() <= 0.5  # 500 rad/s², which no effort of these motors makes


@pytest.mark.parametrize("duration", DURATIONS)
def test_a_stop_of_fast_links_at_nominal_stiffness_keeps_the_speed_of_motors(duration: float) -> None:
    """Their efforts bring springs close to slack; the stop takes longer, or leaves out jerk and snap."""
    way, start = np.array([1.0, 0.7]), np.array([0.1, 0.2])
    f, h = np.array([2.5, -3.75, 1.5, -0.25]) / 8, np.arange(4.0)
    k = table_of("nominal").arm.side.nominal_stiffness
    found = 0
    for rate in (2, 3, 4, 5):

        def given(t: float, rate: int = rate) -> dict[str, Array]:
            rows = [(f * np.cos(rate * t * h + 0.5 * np.pi * n) * (h * rate) ** n).sum() * way for n in range(5)]
            rows[0] = rows[0] + start
            return dict(zip(STATE_NAMES, rows, strict=True)) | {"k": k}

        for cycles in range(150, 700, 100):
            stop = Stop("nominal", duration, given, cycles)
            if not stop.refused:
                found += 1
                stop.check()
    assert found > 15


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 200), marks=pytest.mark.soak)], ids=["some", "many"])
@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("spring", SPRINGS)
def test_a_stop_of_changing_stiffness_and_base_keeps_the_speed_of_motors(
    spring: str, duration: float, seeds: range
) -> None:
    """Stiffness that falls to its limit comes to rest above it, sooner than the joints."""
    nominal, least = np.asarray(table_of(spring).arm.side.nominal_stiffness), SPRINGS[spring][1]
    found = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        joints = rng.uniform(0.1, 1, 2), rng.uniform(0.5, 5, 2), rng.uniform(0, 6, 2)
        stiffness = rng.uniform(0.05, 0.9) * (nominal - least), rng.uniform(0.5, 8, 2), rng.uniform(0, 6, 2)
        base = np.array([rng.choice([0.0, 0.5])]), np.array([rng.uniform(0.5, 4)]), np.zeros(1)

        def given(t: float, joints: Any = joints, stiffness: Any = stiffness, base: Any = base) -> dict[str, Any]:
            vectors: dict[str, Any] = dict(zip(STATE_NAMES, sine(t, *joints), strict=True))
            vectors |= dict(zip(("k", "kd", "kdd"), sine(t, *stiffness)[:3], strict=True))
            vectors["k"] = vectors["k"] + nominal
            if base[0] > 0:
                rates = sine(t, *base)[:, 0]
                vectors |= {name: [0, 0, rates[k]] for k, name in enumerate(("w", "wd", "wdd", "wddd"))}
                vectors |= {
                    name: [rates[k + 1], rates[k], 9.81 * (k == 0)] for k, name in enumerate(("f", "fd", "fdd"))
                }
            return vectors

        stop = Stop(spring, duration, given, int(rng.integers(20, 400)))
        if not stop.refused:
            found += 1
            stop.check()
    assert found > len(seeds) / 2


# --- Steps after a wait -----------------------------------------------------------------------------------------------


@pytest.mark.xfail(
    strict=True,
    reason="the allowance of a step grows with the time since the last command, in which drives hold it: "
    "a step that was refused is sent in one cycle once it has waited",
)
@pytest.mark.parametrize(
    ("robot", "q", "name", "first", "vector", "most"),
    [
        ("vsa_planar_2r", [0.3, 0.4], "k", [600.0, 300.0], "drive_position", 1.01e-3 * SPEED),
        ("panda", [0, -0.5, 0, -1.5, 0, 1.5, 0.5], "W", [0, 0, 0, 0, 0, 60.0], "sent_effort", 2.0),
    ],
    ids=["stiffness", "wrench"],
)
def test_a_step_that_was_refused_is_not_sent_in_one_cycle_later(
    robot: str, q: list[float], name: str, first: list[float], vector: str, most: float
) -> None:
    """Steps per cycle: of the motor by its speed; of effort by twice its rate limit of 1000 N m/s."""
    rig = LoopRig(robot)
    rig.restart(q)
    state = np.zeros((5, len(q)))
    state[0] = q
    for k in range(260):
        rig.refer(state, **({name: first} if k < 100 else {}))
        rig.run()
    assert np.abs(np.diff(Record(rig).sent[vector], axis=0)).max() <= most
