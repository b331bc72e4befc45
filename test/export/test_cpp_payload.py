# SPDX-License-Identifier: Apache-2.0
"""Payloads in the exported C++ loop: the commands of the node's solver, setpoint by setpoint, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compilation import COMPILERS, SANITIZERS, supports
from exported import compiled, robot, succeed, with_values
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import DampedSpring, LinearSpring
from eom_dynamics.export import FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, PLANT, cpp_project
from eom_dynamics.messages.joint_order import JointOrders
from eom_dynamics.messages.payload_blend import PayloadBlend
from eom_dynamics.messages.setpoint_to_command import DeflectionFilter, SetpointEvaluator

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

WITH_PAYLOAD = [FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD]

PRESLIDING = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2, presliding_distance=0.3), Gear(0.8, 2.0))
SPRINGS = LinearSpring(100.0), DampedSpring(200.0, 2.0)
STICKING = Actuator(replace(PRESLIDING.friction, presliding_distance=0.01))
LINEAR = replace(
    with_springs(robot("planar_2r"), LinearSpring(100.0), LinearSpring(80.0), actuator=STICKING), name="arm"
)
DAMPED = replace(
    with_springs(robot("planar_2r"), *SPRINGS, rotor_inertia=0.1, actuator=PRESLIDING),
    name="arm",
    transmission=((0, 1), Transmission([[0.5, 0.4], [0.6, -0.5]])),
)

# Changes of the payload: before which cycle, mass, x of the centre of mass, moment of inertia, and time.
CHANGES = ((5, 0.3, 0.1, 0.01, 0.02), (15, 0.1, 0.0, 0.0, 0.03), (60, 0.0, 0.0, 0.0, 0.01))
CYCLES, START = 90, 1_700_000_000_000_000_000
# In ms, amid the second change.
GAP_BEFORE, GAP = 20, 300

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <eom/control_loop.hpp>
#include <eom/robots/arm.hpp>

using Robot = eom::robots::Arm;

static eom::ControlLoop<Robot> loop;

static void carry(double mass, double x, double inertia, double time)
{
    auto &payload = loop.payloads.draft();
    payload = {};
    payload.at_tool[0].mass = mass;
    payload.at_tool[0].center_of_mass = {x, 0, 0};
    payload.at_tool[0].inertia = {inertia, 0, 0, inertia, 0, inertia};
    payload.blend_time = time;
    loop.payloads.send();
}

int main(int, char **arguments)
{
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::ignore;
    parameters.command_lead = std::atof(arguments[1]);
    if (loop.configure(parameters))
        return 1;
    for (int k = 0; k < @cycles@; ++k) {
@changes@
        eom::Setpoint<Robot> x;
        const double t = k * 1e-3;
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            x.q[i] = 0.1 + t;
            x.qd[i] = 1 + 2 * t;
            x.qdd[i] = 2 - t;
            x.qddd[i] = -1;
            x.qdddd[i] = 5;
        }
        const std::int64_t now = @start@ + (k < @gap_before@ ? k : k + @gap@) * 1'000'000;
        loop.refer(x, now);
        const auto &y = loop.update(now, 1e-3, {}).command;
        for (const auto *row : {&y.tau, &y.taud, &y.taudd})
            for (const double value : *row)
                std::printf("%.17g ", value);
        for (const auto *row : {&y.motor_position, &y.motor_velocity, &y.motor_acceleration, &y.motor_effort})
            for (const double value : *row)
                std::printf("%.17g ", value);
        std::printf("\\n");
    }
    const double wrong[][4] = {{-1, 0, 0, 0.1},     {0, 0, 1, 0.1}, {1, 0, -1, 0.1}, {1, 0, 0, -0.1},
                               {1e300, 0, 0, 0}, {1, -2e12, 0, 0}, {1, 0, 2e12, 0}, {1, 0, 0, 61}};
    for (const auto &row : wrong) {
        carry(row[0], row[1], row[2], row[3]);
        loop.update(0, 1e-3, {});
        std::printf("%s\\n", loop.payload_refusal());
    }
    for (int k = 0; k < 20; ++k) { // none of which begins
        carry(1, 0, 0, 0.1);
        loop.update(0, 1e-3, {});
    }
    std::printf("%d\\n", static_cast<int>(loop.counts().refused_payloads));
}
"""

# Linearized: measured near the reference, while the payload changes for 0.02 s. By clock: setpoints at rest, whose
# stamps have two offsets from the clock in turn, while a payload of 10 kg comes in 1 s; and the effort that remains.
LINEAR_PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <eom/control_loop.hpp>
#include <eom/robots/arm.hpp>

using Robot = eom::robots::Arm;

static eom::ControlLoop<Robot> loop;

static int linearized()
{
    auto &payload = loop.payloads.draft();
    payload.at_tool[0] = {0.5, {0.1, 0.2, 0}, {0.01, 0, 0, 0.01, 0, 0.01}};
    payload.blend_time = 0.02;
    loop.payloads.send();
    for (int k = 0; k < 30; ++k) {
        eom::Setpoint<Robot> x;
        x.q = {0.3, -0.4};
        x.qd = {0.1, 0.2};
        x.qdd = {0.5, -1};
        eom::Measurement<Robot> measured;
        measured.q = {0.31, -0.42};
        measured.qd = {0.12, 0.17};
        measured.motor_position = {0.35, -0.40};
        measured.motor_velocity = {0.10, 0.20};
        measured.links = measured.motors = true;
        const std::int64_t now = @start@ + k * 1'000'000;
        loop.refer(x, now);
        for (const double value : loop.update(now, 1e-3, measured).motor_effort)
            std::printf("%.17g ", value);
        std::printf("\\n");
    }
    std::printf("%d\\n", static_cast<int>(loop.counts().refused_payloads));
    return 0;
}

static int by_clock(const char *const *offsets)
{
    loop.payloads.draft().at_tool[0].mass = 10;
    loop.payloads.draft().blend_time = 1;
    loop.payloads.send();
    for (int k = 0; k < 1200; ++k) {
        const std::int64_t now = @start@ + k * 1'000'000;
        const double offset = std::atof(offsets[k % 2]);
        loop.refer({}, offset > 1e6 ? 0 : now + static_cast<std::int64_t>(offset * 1e9));
        const double mass = loop.update(now, 1e-3, {}).setpoint.P[0];
        std::printf("%.17g %.17g\\n", mass, loop.release({}).effort[0]);
    }
    return 0;
}

int main(int count, char **arguments)
{
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::ignore;
    parameters.effort_on_deactivate = eom::EffortOnDeactivate::gravity;
    parameters.linearize = count == 1;
    parameters.natural_frequency = 20;
    if (count == 1)
        parameters.command_lead = 0;
    if (loop.configure(parameters))
        return 1;
    return count == 1 ? linearized() : by_clock(arguments + 1);
}
"""


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of LINEAR_PROGRAM."""
    folder = tmp_path_factory.mktemp("linear")
    compiled(LINEAR, [*WITH_PAYLOAD, PLANT], LINEAR_PROGRAM.replace("@start@", str(START)), folder)
    return folder


def motion(k: int) -> np.ndarray:
    t = k * 1e-3
    return np.outer([0.1 + t, 1 + 2 * t, 2 - t, -1, 5], [1, 1])


def commands_of_the_solver(arm: eom.ElasticArm, lead: float) -> np.ndarray:
    solver = SetpointEvaluator(arm, lead=lead)
    order, rows = JointOrders(arm).of([]), []
    for k in range(CYCLES):
        for cycle, mass, x, inertia, time in CHANGES:
            if k == cycle:
                solver.payload.change(eom.Payload(mass, [x, 0, 0], inertia * np.eye(3)), time)
        now = START + (k if k < GAP_BEFORE else k + GAP) * 10**6
        solver.clock = lambda now=now: now
        found = solver.command(order, motion(k), stamp=now, limit_policy="ignore")
        solver.commit()
        rows.append(np.concatenate([found.efforts.ravel(), found.motors.ravel()]))
    return np.array(rows)


def test_the_loop_blends_as_the_node(tmp_path: Path) -> None:
    changes = "\n".join(
        f"        if (k == {cycle})\n            carry({mass}, {x}, {inertia}, {time});"
        for cycle, mass, x, inertia, time in CHANGES
    )
    numbers = {"cycles": CYCLES, "start": START, "gap_before": GAP_BEFORE, "gap": GAP, "changes": changes}
    text = PROGRAM
    for name, value in numbers.items():
        text = text.replace(f"@{name}@", str(value))
    compiled(DAMPED, WITH_PAYLOAD, text, tmp_path)
    elastic = eom.ElasticArm(DAMPED)
    for lead in (2.5e-3, 0.0):
        lines = succeed([tmp_path / "built", str(lead)], tmp_path).splitlines()
        found = np.array([[float(x) for x in line.split()] for line in lines[:CYCLES]])
        wanted = commands_of_the_solver(elastic, lead)
        # The blend is computed in another order of operations, by some roundings.
        assert np.max(np.abs(found - wanted) / np.max(np.abs(wanted), axis=0)) < 1e-12
    # The payload matters by far more, and nothing of it is left at the end.
    bare = SetpointEvaluator(elastic).command(JointOrders(elastic).of([]), motion(50))
    assert np.max(np.abs(found[50, :2] - bare.efforts[0])) > 0.1
    assert lines[CYCLES:] == [
        "mass of a payload must not be negative",
        "a payload with inertia must have mass",
        "no rigid body has the inertia of a payload",
        "blend_time must be 0 to 60 s",
        *["mass, center_of_mass and inertia of a payload must be at most 1e12"] * 3,
        "blend_time must be 0 to 60 s",
        "8",
    ]


def test_feedback_linearization_takes_the_payload_and_the_state_of_friction(linear: Path) -> None:
    *lines, refused = succeed([linear / "built"], linear).splitlines()
    assert refused == "0"
    elastic = eom.ElasticArm(LINEAR)
    blend = PayloadBlend(LINEAR)
    blend.change(eom.Payload(0.5, [0.1, 0.2, 0.0], 0.01 * np.eye(3)), 0.02)
    reference = [[0.3, -0.4], [0.1, 0.2], [0.5, -1.0], [0.0, 0.0], [0.0, 0.0]]
    measured = ([0.35, -0.40], [0.10, 0.20], [0.31, -0.42], [0.12, 0.17])
    states, smooth, wanted = DeflectionFilter(elastic), [], []
    for k in range(len(lines)):
        now = START + k * 10**6
        P = tuple(blend.at(now, now))
        blend.commit()
        _, kept = states.command(now, *reference, payload=P)
        states.keep(now, *kept)
        given = elastic, eom.flat_state(elastic, *measured, payload=P), reference, eom.chain_gains(20.0)
        smooth.append(eom.linearizing_effort(*given, payload=P))
        wanted.append(eom.linearizing_effort(*given, friction_state=kept[2], payload=P))
    found = np.array([[float(x) for x in line.split()] for line in lines])
    # Gains of 20⁴ on what differs by some roundings.
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert np.max(np.abs(found[-1] - found[0])) > 0.1 and np.max(np.abs(np.subtract(smooth, wanted)[-1])) > 0.1


def test_a_blend_goes_by_the_clock(linear: Path) -> None:
    """Whatever the stamps: of publishers that are apart, without any, or of a clock that is ahead."""
    clock, elastic = 1e-3 * np.arange(1200), eom.ElasticArm(LINEAR)
    none = "1e9"
    for offsets, slack in ((("0", "0"), 0.0), ((none, none), 0.0), (("0", "-3"), 0.02), (("0", "0.5"), 0.02)):
        text = succeed([linear / "built", *offsets], linear)
        masses, remaining = np.array(text.split(), float).reshape(-1, 2).T
        for mass, effort in zip(masses[::100], remaining[::100], strict=True):
            held = elastic.feedforward(*np.zeros((5, 2)), payload=eom.Payload(mass)).motor_effort[0]
            np.testing.assert_allclose(effort, held, rtol=1e-12)
        earliest, latest = (
            10 * u**3 * (10 - 15 * u + 6 * u**2) for u in np.clip([clock + slack, clock - slack / 10], 0, 1)
        )
        assert np.all(np.diff(masses) >= 0)
        assert np.all(masses <= earliest + 1e-12) and np.all(masses >= latest - 1e-12), offsets


@pytest.mark.parametrize("sanitized", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_loop_of_payloads_passes_its_tests(sanitized: bool, tmp_path: Path) -> None:
    """With what is refused while the payload changes; dampers and friction have states, too."""
    flags = SANITIZERS if sanitized and supports(tmp_path, *SANITIZERS) else ()
    program = cpp_project.cpp_files(*with_values(DAMPED, tuple(WITH_PAYLOAD)))["test/test_control_loop.cpp"]
    compiled(DAMPED, WITH_PAYLOAD, program.replace('"checks.hpp"', '"test/checks.hpp"'), tmp_path, *flags)
    lines = succeed([tmp_path / "built", "1000"], tmp_path).splitlines()
    assert all(line.startswith(("ok", "none")) for line in lines), lines
