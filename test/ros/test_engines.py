# SPDX-License-Identifier: Apache-2.0
"""A setpoint has one meaning: each scene goes through all engines that know it, and their commands are the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.messages.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Spline

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from setpoint_engines import STOP, Carried, Cycle, NodeEngine, Scene, loop_player, looped, replayed, time_of

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

COUNT = 60

REPLAYS_SETPOINTS = {"replay": "a bag has the setpoints, and neither the stops nor the trajectories of the node"}
IN_THE_ORDER_OF_THE_ROBOT = {"loop": "its references have no names"}

# Relative to 1 and the largest entry of a row. Kernels are the same, so that all but polynomials of time have the same
# bits. Their derivatives, up to 1/T^4, amplify rounding: of payloads within 0.01 s, as a share of the efforts; of stops
# within 0.15 s; and of a transition within 0.04 s.
WEIGHTS, STOPS, SPLINES = 1e-14, 1e-11, 1e-10


def weak(arm: Robot, joint: int, torque: float) -> Robot:
    """With a limit of the torque of a motor."""
    joints = list(arm.joints)
    actuator = joints[joint].actuator
    joints[joint] = replace(
        joints[joint], actuator=replace(actuator, motor=replace(actuator.motor, torque_limit=torque))
    )
    return replace(arm, joints=tuple(joints))


def limited(arm: Robot) -> Robot:
    """With limits that the first half of the motions exceeds: of a joint's effort, and of a motor's torque."""
    first, second = weak(arm, 1, 0.022).joints
    return replace(arm, joints=(replace(first, limits=Limits(lower=-0.3, upper=0.3, effort=14.8)), second))


def slow(arm: Robot) -> Robot:
    """With limits that the wanted stop would exceed, and a longer one does not."""
    first, second = arm.joints
    return replace(arm, joints=(replace(first, limits=Limits(acceleration=2.0, jerk=100.0)), second))


ROBOTS = {
    "soft": lambda: robot("sea_planar_2r"),
    "limited": lambda: limited(robot("sea_planar_2r")),
    "weak": lambda: weak(robot("sea_planar_2r"), 0, 0.15),
    "slow": lambda: slow(robot("sea_planar_2r")),
    "variable": lambda: robot("vsa_planar_2r"),
    "damped, coupled, sticking": lambda: robot("shared"),
    "own drives": lambda: robot("drives"),
    "two tools": lambda: robot("scissors"),
}


def motion(n: int, k: int, size: float) -> dict[str, Array]:
    """Fields of a setpoint of a smooth motion."""
    w, phase = 4.0 + 0.3 * np.arange(n), 1.3 * np.arange(n)
    t = 1e-3 * k
    return {name: size * w**i * np.sin(w * t + phase + i * np.pi / 2) for i, name in enumerate(STATE_FIELDS)}


def wrenches(arm: Robot, k: int) -> dict[str, Array]:
    tools = len(arm.tools)
    phase = 0.7 * np.arange(6 * tools)
    rows = (3.0 * 5.0**i * np.sin(5e-3 * k + phase + i * np.pi / 2) for i in range(3))
    return {name: row.reshape(tools, 6) for name, row in zip(WRENCH_FIELDS, rows, strict=True)}


def stiffness(arm: Robot, k: int) -> dict[str, Array]:
    rest = ElasticArm(arm).stiffness
    rows = (rest * (i == 0) + 0.1 * rest * 2.0**i * np.sin(2e-3 * k + i * np.pi / 2) for i in range(3))
    return dict(zip(STIFFNESS_FIELDS, rows, strict=True))


def cycles(arm: Robot, size: float = 0.2, count: int = COUNT) -> list[Cycle]:
    return [Cycle(motion(arm.n, k, size)) for k in range(count)]


def spoiled(given: list[Cycle], changes: Mapping[int, Mapping[str, float]]) -> list[Cycle]:
    """With an entry of fields of some setpoints replaced by a number."""
    for k, fields in changes.items():
        of_message = dict(given[k].fields)
        for name, value in fields.items():
            of_message[name] = of_message[name].copy()
            of_message[name].flat[-1] = value
        given[k] = given[k]._replace(fields=of_message)
    return given


REFUSED = {0: {"position": np.nan}, 20: {"jerk": np.inf}, 21: {"snap": 1e300}, 40: {"velocity": np.nan}}


def refusals(arm: Robot) -> Scene:
    """Not finite, and too large; the first one has no command before it."""
    return Scene(arm, spoiled(cycles(arm), REFUSED))


def stamps(arm: Robot) -> Scene:
    """That go back, jump ahead, are repeated, and are missing, with dampers and bristles, and refused setpoints."""
    given = spoiled(cycles(arm, 0.05), REFUSED)
    for k, stamp in {10: 0, 25: time_of(20), 30: time_of(30 + 500), 31: time_of(31 + 500), 45: time_of(44)}.items():
        given[k] = given[k]._replace(stamp=stamp)
    return Scene(arm, given)


def limits(policy: str) -> Any:
    """Beyond efforts of joint and motor, both ways; at an end of a range, and beyond by less and more than a turn."""
    end = 0.3 * (1 + 1e-9)  # the check's, which allows for rounding

    def scene(arm: Robot) -> Scene:
        given = spoiled(cycles(arm, 0.4), REFUSED)
        for k, q in {48: end, 49: np.nextafter(end, 1.0), 50: 6.5, 51: 6.6, 52: -6.5, 53: -6.6, 54: 3.1}.items():
            given[k].fields["position"][0] = q
        return Scene(arm, given, limits=policy, rounding=1e-15)

    return scene


def lead(arm: Robot) -> Scene:
    """Commands for a motion 2.5 ms later."""
    return Scene(arm, spoiled(cycles(arm, 0.05), REFUSED), lead=2.5e-3)


def lead_of_wrenches(arm: Robot) -> Scene:
    return Scene(arm, [x._replace(fields=x.fields | wrenches(arm, k)) for k, x in enumerate(cycles(arm))], lead=2.5e-3)


def lead_with_drives(arm: Robot) -> Scene:
    return Scene(arm, cycles(arm, 0.1), limits="clip", lead=2.5e-3, rounding=1e-15)


def wrenches_that_come_and_go(arm: Robot) -> Scene:
    given = cycles(arm, 0.1)
    given = [x._replace(fields=x.fields | (wrenches(arm, k) if k % 30 >= 10 else {})) for k, x in enumerate(given)]
    return Scene(arm, spoiled(given, {25: {"wrench_rate": np.nan}}))


def commanded_stiffness(arm: Robot) -> Scene:
    """Also none, and such that no spring has."""
    given = [x._replace(fields=x.fields | stiffness(arm, k)) for k, x in enumerate(cycles(arm, 0.05))]
    given = spoiled(given, {20: {"stiffness": -1.0}, 30: {"stiffness_rate": np.nan}, 40: {"stiffness": 0.0}})
    return Scene(arm, given)


def payload(arm: Robot) -> Scene:
    """One that comes, another one amid its blend, with refused setpoints, an impossible one, and none."""
    given = spoiled(cycles(arm, 0.1), {0: {"position": np.nan}, 8: {"jerk": np.nan}, 25: {"snap": 1e300}})
    for k, carried in {
        5: Carried(0.3, (0.1, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01), 0.02),
        15: Carried(0.1, blend_time=0.03),
        30: Carried(-1.0),
        45: Carried(0.0, blend_time=0.01),
    }.items():
        given[k] = given[k]._replace(payload=carried)
    return Scene(arm, given, rounding=WEIGHTS)


def loss(policy: str, limits: str = "ignore") -> Any:
    """Setpoints end in motion, or are refused, which is no better; one that is refused comes during the stop."""

    def scene(arm: Robot) -> Scene:
        given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230))]
        for k in (20, 21, 22, 60):
            given[k] = Cycle(motion(arm.n, k, 0.1) | {"jerk": np.full(arm.n, np.nan)})
        return Scene(arm, given, limits=limits, loss=policy, rounding=STOPS, lacks=REPLAYS_SETPOINTS)

    return scene


def return_amid_a_stop(arm: Robot) -> Scene:
    """Setpoints are lost for 15 ms, while a payload changes, and come back."""
    given = cycles(arm, 0.1)
    given[18] = given[18]._replace(payload=Carried(0.3, blend_time=0.03))
    given[20:35] = [Cycle()] * 15
    return Scene(arm, given, loss="hold", rounding=STOPS, lacks=REPLAYS_SETPOINTS)


def trajectory(arm: Robot) -> Scene:
    """From a stream to a trajectory, which another one replaces; setpoints meanwhile are refused."""

    def spline(start: int, times: list[float], rest: bool) -> Spline:
        rows = [motion(arm.n, start + round(1e3 * t), 0.05) for t in times]
        states = np.array([[row[name] for row in rows] for name in STATE_FIELDS])
        states[1:, -1] *= not rest
        return Spline(times, states)

    given = [*cycles(arm, 0.05, 10), *(Cycle() for _ in range(60))]
    given[10] = Cycle(spline=spline(10, [0.0, 0.04, 0.3], False))
    given[20] = Cycle(motion(arm.n, 20, 0.05))
    given[25] = Cycle(spline=spline(25, [0.0, 0.2, 0.3], True))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def other_order(arm: Robot) -> Scene:
    return Scene(arm, cycles(arm, 0.1), reverse=True, lacks=IN_THE_ORDER_OF_THE_ROBOT)


def on_a_base(scene: Scene) -> Scene:
    """The setpoints of a scene, but for some, on a base that turns and accelerates.

    A specific force of exactly zero is refused, and so are numbers that are not finite.
    """
    given = list(scene.cycles)
    for k, x in enumerate(given):
        rows = 0.1 * np.sin(5e-3 * k + np.arange(21.0).reshape(7, 3))
        rows[4] += (0.0, 9.81, 0.0)
        rows[4] *= k not in (12, 50)
        if k == 11:
            rows[3, 1] = np.inf
        if x.fields is not None and k not in (28, 29, 53):
            given[k] = x._replace(fields=x.fields | {BASE_FIELD: rows})
    return replace(scene, cycles=given)


def base(scene: Any) -> Any:
    return lambda arm: on_a_base(scene(arm))


def free_fall(arm: Robot) -> Scene:
    """A stop at whose end the specific force is exactly zero, f + T fd / 2, which is no reason not to stop."""
    scene = on_a_base(loss("hold")(arm))
    rows = np.zeros((7, 3))
    rows[4:6, 1] = STOP * 4.0, -8.0
    scene.cycles[19].fields[BASE_FIELD][:] = rows
    return scene


SCENES = {
    "refusals": ("soft", refusals),
    "limits, ignore": ("limited", limits("ignore")),
    "limits, warn": ("limited", limits("warn")),
    "limits, refuse": ("limited", limits("refuse")),
    "limits, clip": ("limited", limits("clip")),
    "stamps": ("damped, coupled, sticking", stamps),
    "lead": ("damped, coupled, sticking", lead),
    "lead of wrenches": ("soft", lead_of_wrenches),
    "lead of own drives": ("own drives", lead_with_drives),
    "wrenches that come and go": ("soft", wrenches_that_come_and_go),
    "wrenches at two tools": ("two tools", wrenches_that_come_and_go),
    "commanded stiffness": ("variable", commanded_stiffness),
    "payload": ("soft", payload),
    "payload, damped": ("damped, coupled, sticking", payload),
    "loss, hold": ("soft", loss("hold")),
    "loss, ramp": ("own drives", loss("ramp")),
    "loss, ramp, clipped": ("weak", loss("ramp", "clip")),
    "loss, hold, longer": ("slow", loss("hold", "warn")),
    "loss, hold, damped": ("damped, coupled, sticking", loss("hold")),
    "return amid a stop": ("soft", return_amid_a_stop),
    "trajectory": ("soft", trajectory),
    "other order": ("soft", other_order),
    "base": ("soft", base(refusals)),
    "base, payload": ("soft", base(payload)),
    "base, lead": ("soft", base(lead_of_wrenches)),
    "base, lead, damped": ("damped, coupled, sticking", base(lead)),
    "base, loss, hold": ("soft", base(loss("hold"))),
    "base, loss, ramp": ("own drives", base(loss("ramp"))),
    "base, loss, hold, longer": ("slow", base(loss("hold", "warn"))),
    "base, loss, free fall": ("soft", free_fall),
    "base, return amid a stop": ("soft", base(return_amid_a_stop)),
}


@pytest.fixture(scope="module")
def node(ros: Any) -> Iterator[NodeEngine]:
    from eom_dynamics.ros.dynamics_node import DynamicsNode
    from eom_dynamics.ros.executors import end_workers

    given = {"robot_file": "planar_2r", "hold_last_command": "always", "use_sim_time": "true", "moving_base": "true"}
    options = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    stop = SimpleNamespace(came=False, interrupting=nullcontext)
    started = DynamicsNode(stop, cli_args=["--ros-args", "-r", "__ns:=/engines", *options])
    started.start_up()
    yield NodeEngine(started)
    end_workers(started, 2.0)
    started.destroy_node()


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Robot, Path]]:
    """Robots and their files."""
    folder, found = tmp_path_factory.mktemp("robots"), {}
    for k, (name, made) in enumerate(ROBOTS.items()):
        path = folder / f"robot_{k}.yaml"
        path.write_text(robot_as_yaml(made()).text, encoding="utf-8")
        found[name] = load_robot(str(path)), path
    return found


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loop_player(tmp_path_factory.mktemp("loops"))


@pytest.mark.parametrize("name", SCENES)
def test_engines_agree(
    name: str, node: NodeEngine, robots: Mapping[str, tuple[Robot, Path]], player: Path, tmp_path: Path
) -> None:
    which, made = SCENES[name]
    arm, file = robots[which]
    scene = made(arm)
    expected = node.play(scene, compiled=False)
    np.testing.assert_array_equal(node.play(scene, compiled=True), expected)
    others = {}
    if "replay" not in scene.lacks:
        others["replay"] = replayed(scene, file, tmp_path)
    if "loop" not in scene.lacks:
        others["loop"] = looped(scene, player, tmp_path)
    n, m = arm.n, len(ElasticArm(arm).motor_names)
    ends = np.cumsum([1, n, n, m, m, m])
    for engine, rows in others.items():
        np.testing.assert_array_equal(rows[:, 0], expected[:, 0], err_msg=engine)
        for got, wanted in zip(np.split(rows, ends, 1), np.split(expected, ends, 1), strict=True):
            size = 1 + np.abs(wanted).max(axis=1, keepdims=True)
            assert np.all(np.abs(got - wanted) <= scene.rounding * size), engine
