# SPDX-License-Identifier: Apache-2.0
"""Scenes of setpoints: refusals, limits, leads, payloads, losses and checks, also on a moving base."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from loop_scene import STOP, Carried, Cycle, Scene, time_of, varied
from reference.checks import Settings
from reference.impedance import Gains

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS

COUNT = 60

REPLAYS_SETPOINTS = {"replay": "a bag has the setpoints, and neither the stops nor the trajectories of the node"}
IN_THE_ORDER_OF_THE_ROBOT = dict.fromkeys(("controller", "Python"), "its references have no names")


def motion(n: int, k: int, size: float) -> dict[str, Array]:
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
    """Not finite, and too large; the first setpoint has no command before it."""
    return Scene(arm, spoiled(cycles(arm), REFUSED))


def stamps(arm: Robot) -> Scene:
    """Stamps that go back, jump ahead, repeat, and are missing, with dampers and bristles, and refused setpoints."""
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
        return Scene(arm, given, limits=policy)

    return scene


def lead(arm: Robot) -> Scene:
    """Commands for a motion 2.5 ms later."""
    return Scene(varied(arm, drive_delay=2.5e-3), spoiled(cycles(arm, 0.05), REFUSED))


def lead_of_wrenches(arm: Robot) -> Scene:
    given = [x._replace(fields=x.fields | wrenches(arm, k)) for k, x in enumerate(cycles(arm))]
    return Scene(varied(arm, drive_delay=2.5e-3), given)


def lead_with_drives(arm: Robot) -> Scene:
    return Scene(varied(arm, drive_delay=2.5e-3), cycles(arm, 0.1), limits="warn")


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
    """A payload, another one during its blend, with refused setpoints, an impossible payload, and no payload."""
    given = spoiled(cycles(arm, 0.1), {0: {"position": np.nan}, 8: {"jerk": np.nan}, 25: {"snap": 1e300}})
    for k, carried in {
        5: Carried(0.3, (0.1, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01), 0.02),
        15: Carried(0.1, blend_time=0.03),
        30: Carried(-1.0),
        45: Carried(0.0, blend_time=0.01),
    }.items():
        given[k] = given[k]._replace(payload=carried)
    return Scene(arm, given)


def payload_at_rest(arm: Robot) -> Scene:
    """References end at rest during a blend; two payloads come without references, which return during a blend."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230))]
    for k in range(20):
        fields = given[k].fields
        given[k] = Cycle({name: fields[name] * (name == "position") for name in fields})
        given[k].fields["position"] = 0.3 + 0 * given[0].fields["position"]
    for k, mass in ((5, 0.3), (140, 0.1), (240, 0.2)):
        given[k] = given[k]._replace(payload=Carried(mass, (0.1, 0.0, 0.0), blend_time=0.03))
    given.append(given[0]._replace(payload=None))
    return Scene(arm, given, lacks=REPLAYS_SETPOINTS)


def loss(policy: str, limits: str = "ignore") -> Any:
    """Setpoints end in motion, or are refused, which is no better: at the loss, and one during the stop."""

    def scene(arm: Robot) -> Scene:
        given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230))]
        for k in (*range(20, 27), 60, 61):
            spoiled = {"jerk": np.full(arm.n, np.nan)} if k % 2 else {"velocity": np.full(arm.n, 1e200)}
            given[k] = Cycle(motion(arm.n, k, 0.1) | spoiled)
        return Scene(arm, given, limits=limits, loss=policy, lacks=REPLAYS_SETPOINTS)

    return scene


def noisy_loss(arm: Robot) -> Scene:
    """The last snap of the first joint is slightly too large for its motion, the snaps of others are not."""
    scene = loss("hold")(arm)
    x = scene.cycles[19].fields
    move = np.abs(x["velocity"]) / 2 + STOP * 3 * np.abs(x["acceleration"]) / 28
    x["snap"][:] = 1680 / STOP**3 * np.where(np.arange(arm.n), 0.9, 1.1) * move
    x["jerk"][:] = 0.0
    return scene


def return_amid_a_stop(arm: Robot) -> Scene:
    """Setpoints are lost for 15 ms, while a payload changes, and come back."""
    given = cycles(arm, 0.1)
    given[18] = given[18]._replace(payload=Carried(0.3, blend_time=0.03))
    given[20:35] = [Cycle()] * 15
    return Scene(arm, given, loss="hold", lacks=REPLAYS_SETPOINTS)


def suspect_stamps(arm: Robot) -> Scene:
    """Repeated, going back once and by a clock that was set back, and missing."""
    given = cycles(arm)
    for k, stamp in {10: time_of(9), 20: time_of(15), 30: 0, 31: time_of(29)}.items():
        given[k] = given[k]._replace(stamp=stamp)
    given[40:] = [x._replace(stamp=time_of(k - 1000)) for k, x in enumerate(given[40:], 40)]
    return Scene(arm, given, checks=Settings(stamps="refuse", jumps="warn"), lacks=REPLAYS_SETPOINTS)


def jumps(policy: str) -> Any:
    """Jumps of position and velocity, for one setpoint and for long; the motion then returns."""

    def scene(arm: Robot) -> Scene:
        given = cycles(arm)
        for k in (10, *range(20, 25), 40):
            given[k].fields["position" if k < 40 else "velocity"][0] += 0.1
        return Scene(arm, given, checks=Settings(jumps=policy), lacks=REPLAYS_SETPOINTS)

    return scene


def return_far_from_the_stop(arm: Robot) -> Scene:
    """Setpoints are lost and return near the last setpoint, too far from the held position, then closer."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230)), *cycles(arm, 0.0, 40)]
    for k in range(250, 290):
        given[k].fields["position"] += motion(arm.n, 19, 0.1)["position"]
        given[k].fields["position"][0] += -0.09 if k < 270 else 0.02
    checks = Settings(jumps="refuse")
    return Scene(arm, given, loss="hold", checks=checks, lacks=REPLAYS_SETPOINTS)


def inconsistent(arm: Robot) -> Scene:
    """In degrees per second over three windows, consistent again, and without jerk and snap for a while."""
    given = cycles(arm, count=500)
    for k in range(70, 240):
        given[k].fields["velocity"] = np.degrees(given[k].fields["velocity"])
    for k in range(320, 440):
        given[k].fields["jerk"][1] = 0.0
    return Scene(arm, given, lacks=REPLAYS_SETPOINTS)


def other_order(arm: Robot) -> Scene:
    return Scene(arm, cycles(arm, 0.1), reverse=True, lacks=IN_THE_ORDER_OF_THE_ROBOT)


def on_a_base(scene: Scene) -> Scene:
    """Setpoints of a scene on a base that turns and accelerates, except some setpoints.

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
    return replace(scene, robot=varied(scene.robot, moving_base=True), cycles=given)


def base(scene: Any) -> Any:
    return lambda arm: on_a_base(scene(arm))


def base_in_doubt(arm: Robot) -> Scene:
    """Jumps, one of them with a specific force of zero, which is no jump but refused."""
    scene = jumps("warn")(arm)
    scene.cycles[12].fields["position"][0] += 0.1
    return on_a_base(scene)


def free_fall(arm: Robot) -> Scene:
    """A stop that ends with a specific force of exactly zero, f + T fd / 2, which must not prevent the stop."""
    scene = on_a_base(loss("hold")(arm))
    rows = np.zeros((7, 3))
    rows[4:6, 1] = STOP * 4.0, -8.0
    scene.cycles[19].fields[BASE_FIELD][:] = rows
    return scene


def measured(arm: Robot, given: list[Cycle], away: float) -> list[Cycle]:
    """Cycles with measured motors near the setpoints."""
    elastic, found = ElasticArm(arm), []
    for k, cycle in enumerate(given):
        y = elastic.feedforward(*(cycle.fields[name] for name in STATE_FIELDS))
        phase = 0.1 * k + np.arange(len(y.motor_position))
        rows = y.motor_position + away * np.sin(phase), y.motor_velocity + 100 * away * np.cos(phase)
        found.append(cycle._replace(motors=np.stack(rows)))
    return found


def impedance(gains: Gains) -> Any:
    """On springs from a cycle on, and back."""

    def scene(arm: Robot) -> Scene:
        given = measured(arm, cycles(arm, 0.1), 0.003)
        given[10], given[45] = given[10]._replace(mode="impedance"), given[45]._replace(mode="position")
        return Scene(arm, given, gains=gains, lacks=REPLAYS_SETPOINTS)

    return scene


SETPOINTS: dict[str, tuple[str, Any]] = {
    "refusals": ("soft", refusals),
    "limits, ignore": ("limited", limits("ignore")),
    "limits, warn": ("limited", limits("warn")),
    "limits, refuse": ("limited", limits("refuse")),
    "stamps": ("damped, coupled, sticking", stamps),
    "lead": ("damped, coupled, sticking", lead),
    "lead of wrenches": ("soft", lead_of_wrenches),
    "lead of own drives": ("own drives", lead_with_drives),
    "drives on both sides of gears": ("both sides", lead_with_drives),
    "wrenches that come and go": ("soft", wrenches_that_come_and_go),
    "wrenches at two tools": ("two tools", wrenches_that_come_and_go),
    "commanded stiffness": ("variable", commanded_stiffness),
    "payload": ("soft", payload),
    "payload, damped": ("damped, coupled, sticking", payload),
    "payload at rest": ("soft", payload_at_rest),
    "loss, hold": ("soft", loss("hold")),
    "loss, hold, noisy": ("soft", noisy_loss),
    "loss, own drives": ("own drives", loss("hold")),
    "loss, hold, longer": ("slow", loss("hold", "warn")),
    "return amid a stop": ("soft", return_amid_a_stop),
    "suspect stamps": ("limited rates", suspect_stamps),
    "jumps, warn": ("limited rates", jumps("warn")),
    "jumps, refuse": ("limited rates", jumps("refuse")),
    "return far from the stop": ("limited rates", return_far_from_the_stop),
    "inconsistent": ("soft", inconsistent),
    "other order": ("soft", other_order),
    "impedance": ("soft", impedance(Gains(stiffness=40.0))),
    "impedance, two motors": ("variable", impedance(Gains(stiffness=40.0))),
    "impedance of tools": ("two tools", impedance(Gains(10.0, (90.0, 60.0, 120.0, 6.0, 9.0, 12.0), 0.3))),
    "base": ("soft", base(refusals)),
    "base, payload": ("soft", base(payload)),
    "base, lead": ("soft", base(lead_of_wrenches)),
    "base, loss, hold": ("soft", base(loss("hold"))),
    "base, loss, free fall": ("soft", free_fall),
    "base, return amid a stop": ("soft", base(return_amid_a_stop)),
    "base, jumps": ("limited rates", base_in_doubt),
}
