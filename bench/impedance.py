# SPDX-License-Identifier: Apache-2.0
"""Impedance and hand guiding of an elastic arm in MuJoCo: force of the hand, stiffness, energy and cycle times."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np
from complying import PERIOD, START, Complying, HandledArm
from harness import Section, Settings, TimedTask, Timings, interleaved
from reference.impedance import Gains, Impedance

from eom_dynamics import ElasticArm, Kinematics, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop

POSE = np.array([0.3, 0.7, -0.2, -1.2, 0.4, 0.9, 0.1])
TOOL = (800.0, 1000.0, 1200.0, 60.0, 60.0, 60.0)
STEP = 2.5e-4


def lever(arm: ElasticArm, C: Array) -> Array:
    """From the center of mass of the tool's body to the tool, in the base's directions."""
    tool, joint = arm.robot.tools[0], arm.robot.joints[arm.robot.tools[0].joint]
    return np.asarray(C[:3, :3] @ tool.pose[:3, :3].T @ (tool.pose[:3, 3] - joint.center_of_mass))


def guided(arm: ElasticArm, seconds: float = 4.0, rest: float = 1.5) -> tuple[float, float, float, float]:
    """Distance of the tool, m; mean and largest force of the hand in motion, and force at rest, N."""
    kinematics, forces = Kinematics(arm.robot), []
    start = kinematics.pose(POSE)[:3, 3]
    direction = np.array([0.0, 0.8, 0.6])
    host = Complying(arm, "gravity_compensation")

    def push(t: float) -> tuple[int, Array]:
        q, qd = plant.now
        C, J = kinematics.pose(q), kinematics.jacobian(q)
        s = min(t / seconds, 1.0)
        way, rate = s**3 * (10 - 15 * s + 6 * s * s), 30 * s**2 * (1 - s) ** 2 / seconds
        force = 2000 * (start + 0.3 * way * direction - C[:3, 3]) + 100 * (
            0.3 * rate * direction - C[:3, :3] @ J[3:] @ qd
        )
        forces.append(np.linalg.norm(force))
        return arm.robot.tools[0].joint, np.r_[force, np.cross(lever(arm, C), force)]

    plant = LedArm(host, push, step=STEP)
    links, _ = plant.handle(POSE, seconds + rest)
    moving = forces[: int(len(forces) * seconds / (seconds + rest))]
    moved = kinematics.pose(links[-1])[:3, 3] - start
    return float(np.linalg.norm(moved)), float(np.mean(moving)), max(forces), forces[-1]


class LedArm(HandledArm):
    """Plant with a push that follows the present motion of the links."""

    now = POSE, np.zeros(7)  # positions and velocities of the links

    def _losses(self, model: object, data: object) -> None:
        self.now = data.qpos[: self.n].copy(), data.qvel[: self.n].copy()
        super()._losses(model, data)


def stiffness_errors(arm: ElasticArm, seconds: float = 3.0) -> list[float]:
    """Relative errors of the displacement along x, y and z of the base."""
    kinematics, found = Kinematics(arm.robot), []
    start = kinematics.pose(POSE)
    for axis in range(3):
        force = 20 * np.eye(3)[axis]
        wrench = np.r_[force, np.cross(lever(arm, start), force)]
        host = Complying(arm, "impedance", stiffness=20.0, tool_stiffness=TOOL)
        links, _ = HandledArm(host, lambda t, w=wrench: (arm.robot.tools[0].joint, w), step=STEP).handle(POSE, seconds)
        moved = kinematics.pose(links[-1])[:3, 3] - start[:3, 3]
        found.append(float(moved[axis] * TOOL[axis] / 20 - 1))
    return found


def energies(arm: ElasticArm, mode: str, pushes: int, **gains: object) -> tuple[float, float]:
    """Largest growth of the energy without a push, J, and the largest energy."""
    random, n = np.random.default_rng(5), arm.robot.n
    forces = random.uniform(-1, 1, (pushes, 3)) * 40 / np.sqrt(3)
    free, law = mode == "gravity_compensation", Impedance(arm, Gains(**gains))
    host, stiffness, dynamics = Complying(arm, mode, **gains), arm.stiffness, arm.dynamics
    reference, ones = np.stack([POSE, *np.zeros((4, n))]), np.ones(n)
    law.inertia(POSE)  # also computes the compliance of springs at rest
    rows: list[tuple[float, float]] = []

    def pushed(t: float) -> tuple[int, Array]:
        return n - 1, np.r_[forces[min(int(t / 0.5), pushes - 1)] * (t % 0.5 < 0.2), 0, 0, 0]

    class Weighed(HandledArm):
        near = POSE

        def energy(self) -> float:
            (q, theta), (qd, thetad) = (np.split(row, 2) for row in self.state)
            motors = np.stack([theta, 0 * theta])
            self.near = at = law.comply(reference, motors, self.near, free=free, inertia=ones).q
            spent = dynamics.kinetic_energy(q, qd) + 0.5 * arm.motor_inertia @ thetad**2
            spent += dynamics.potential_energy(q) - dynamics.potential_energy(at)
            spent += 0.5 * stiffness @ ((theta - q) ** 2 - (theta - at) ** 2)
            if not free:
                spent += 0.5 * np.sum(np.asarray(gains["stiffness"]) * (at - POSE) ** 2)
            return float(spent)

        def cycled(self, t: float) -> None:
            if t % 0.5 > 0.21 and round(t * 1e3) % 10 == 0:
                rows.append((t, self.energy()))

    Weighed(host, pushed, step=STEP).handle(POSE, 0.5 * pushes)
    t, energy = np.array(rows).T
    same = np.diff(t) < 0.05
    return float(np.diff(energy)[same].max()), float(energy.max())


def cycle_times(arm: ElasticArm, rounds: int) -> Timings:
    """Times of a cycle by mode, all modes interleaved."""
    y = arm.feedforward(POSE, 0 * POSE, 0 * POSE)
    cases = {"position": {}, "gravity_compensation": {}, "impedance": {"stiffness": 300.0}}
    cases["impedance, tool"] = {"stiffness": 20.0, "tool_stiffness": TOOL}

    def cycles(loop: ControlLoop, starts: Iterator[int]) -> None:
        start = next(starts)
        loop.measure(None, np.stack([y.motor_position + 1e-3 * np.sin(2e-4 * start), y.motor_velocity]))
        for k in range(start, start + 50):
            loop.update(START + k * PERIOD, 1e-3)

    tasks = {}
    for name, gains in cases.items():
        host = Complying(arm, name.split(",")[0], motor_kp=1.0, motor_kd=1.0, **gains)
        host.loop.restart(POSE)
        tasks[name] = TimedTask(partial(cycles, host.loop, count(step=50)), 50)
    return interleaved(tasks, rounds)


def impedance(section: Section, settings: Settings) -> None:
    """Measure force of a hand, stiffness, energies and cycles.

    iiwa in MuJoCo with its springs, cycles of 1 ms. *Hand*: a spring of 2,000 N/m and a damper of 100 N s/m lead
    the tool by 0.3 m in 4 s; its force at rest is the uncompensated weight. *Pushes*: of up to 40 N at the last
    link for 0.2 s, and 0.3 s without; energy: of links, rotors, springs and the mode. *Stiffness*:
    displacement of the tool under 20 N, after 3 s, against the one of the parameter.
    """
    arm, table = ElasticArm(load_robot("iiwa")), section.table("On MuJoCo's iiwa", "", "measured")
    distance, mean, most, rest = guided(arm)
    table.add("hand leads the tool by", f"{distance:.3f} m")
    table.add("force at rest; mean and largest with inertia and damping", f"{rest:.2g} N; {mean:.1f} N, {most:.1f} N")
    section.promise("a hand feels less than 2 N of the weight", f"{rest:.2g} N", rest < 2)
    worst = max(map(abs, stiffness_errors(arm)))
    section.promise("stiffness of the tool within 2 %", f"{100 * worst:.2f} %", worst < 0.02)
    pushes, grows = 10 if settings.quick else 100, 0.0
    for mode, gains in (("gravity_compensation", {}), ("impedance", {"stiffness": 300.0})):
        growth, energy = energies(arm, mode, pushes, **gains)
        what = f"energy after {pushes} pushes, {mode}: largest, largest growth in 10 ms"
        table.add(what, f"{energy:.2f} J, {growth:.1e} J")
        grows = max(grows, growth / energy)
    section.promise("energy does not grow after pushes", f"{grows:.1e} of it", grows < 1e-6)
    times = cycle_times(arm, settings.rounds)
    for name in times.samples:
        table.add(f"cycle from Python, {name}", f"{1e6 * times.median(name):.2f} µs")
