# SPDX-License-Identifier: Apache-2.0
"""The exported control loop gives what the node and replay publish for the same stream of setpoints."""

from __future__ import annotations

import shutil
from array import array
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from compilation import COMPILERS
from exported import CPP_STRICT, compile_functions, export, robot, succeed
from setpoint_streams import COUNT, PERIOD, stream

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import StateError
from eom_dynamics.export import PLANT
from eom_dynamics.export.cpp_project import type_name
from eom_dynamics.messages.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.messages.setpoint_to_command import LIMIT_POLICIES, EvaluatedCommand, SetpointEvaluator
from eom_dynamics.robot.model import Limits
from eom_dynamics.stream.watchdog import LOSS_POLICIES, Settings, Status, Watchdog

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

TIMEOUT, STOP, RAMP = 0.005, 0.15, 0.2

DRIVER = """
#include <cstdio>
#include <cstdlib>
#include <eom/control_loop.hpp>
#include <eom/robots/{name}.hpp>

using Robot = eom::robots::{type};

template <class Values>
bool read(std::FILE *in, Values &values) {{ return std::fread(values.data(), sizeof values, 1, in) == 1; }}

template <class Values>
void write(std::FILE *out, const Values &values) {{ std::fwrite(values.data(), sizeof values, 1, out); }}

int main(int, char **arguments)
{{
    static eom::ControlLoop<Robot> loop;
    eom::LoopParameters<Robot> parameters;
    parameters.limits = static_cast<eom::LimitPolicy>(std::atoi(arguments[1]));
    parameters.setpoint_timeout = std::atof(arguments[2]);
    parameters.on_setpoint_loss = static_cast<eom::LossPolicy>(std::atoi(arguments[3]));
    parameters.stop_duration = {stop};
    parameters.ramp_duration = {ramp};
    parameters.command_lead = std::atof(arguments[5]);
    if (loop.configure(parameters))
        return 1;
    loop.restart({{}});
    std::FILE *in = std::fopen("setpoints", "rb"), *out = std::fopen("commands", "wb");
    eom::Setpoint<Robot> x;
    std::array<std::int64_t, 1> stamp;
    for (long silent = 0; silent <= std::atol(arguments[4]);) {{
        if (read(in, stamp)) {{
            for (auto *values : {{&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd}})
                read(in, *values);
            for (auto *values : {{&x.W, &x.Wd, &x.Wdd}})
                read(in, *values);
            for (auto *values : {{&x.k, &x.kd, &x.kdd}})
                read(in, *values);
            loop.refer(x, stamp[0]);
        }} else {{
            if (silent++ == std::atol(arguments[4]))
                break;
            stamp[0] += 1'000'000;
        }}
        const auto &y = loop.update(stamp[0], 1e-3, {{}});
        write(out, std::array<double, 1>{{static_cast<double>(y.status)}});
        for (const auto *values : {{&y.joint_effort, &y.command.taud, &y.command.taudd}})
            write(out, *values);
        for (const auto *values : {{&y.command.motor_position, &y.command.motor_velocity,
                                    &y.command.motor_acceleration, &y.motor_effort, &y.sent_motor_position(),
                                    &y.sent_motor_velocity(), &y.sent_motor_effort()}})
            write(out, *values);
        write(out, y.sent_joint_effort());
    }}
    return std::fclose(out);
}}
"""


def message(n: int, rows: list[Array], tools: int) -> SimpleNamespace:
    fields = (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS)
    values = [array("d", row) for row in rows]
    values[5:8] = [row.reshape(tools, 6) for row in rows[5:8]]
    return SimpleNamespace(joint_names=[], base=[], **dict(zip(fields, values, strict=True)))


@pytest.fixture(
    scope="module", params=["sea_planar_2r", "shared", "drives", pytest.param("vsa_planar_2r", marks=pytest.mark.soak)]
)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Robot, Path]:
    """A robot, and the driver for it."""
    subject, folder = robot(request.param), tmp_path_factory.mktemp(request.param)
    if request.param == "sea_planar_2r":
        first, *others = subject.joints
        weak = replace(first.actuator, motor=replace(first.actuator.motor, torque_limit=0.2))
        first = replace(first, limits=Limits(lower=-3.0, upper=3.0), actuator=weak)
        subject = replace(subject, joints=(first, *others))
    exported, _ = export(subject, "cpp", folder, [PLANT])
    (folder / "main.cpp").write_text(DRIVER.format(name=exported.name, type=type_name(exported), stop=STOP, ramp=RAMP))
    objects = compile_functions(folder, "-O0")
    succeed(["c++", *CPP_STRICT, "-Iinclude", "-Ic", "main.cpp", *objects, "-o", "built", "-lm"], folder)
    return subject, folder / "built"


def write(setpoints: list[tuple[int, list[Array]]], file: Path) -> None:
    file.write_bytes(b"".join(np.int64(stamp).tobytes() + np.concatenate(rows).tobytes() for stamp, rows in setpoints))


def outputs(solution: EvaluatedCommand) -> Array:
    """Efforts of joints, motors with their rates, and what is sent, in one row as the driver writes them."""
    theta, thetad, _, effort = solution.motors
    sent = solution.sent[:4] if solution.sent else (theta, thetad, effort, solution.efforts[0])
    return np.concatenate([*solution.efforts, *solution.motors, *sent])


def compare(computed: Array, expected: list[Array], n: int, m: int, rtol: float, atol: float) -> None:
    """Compare rows of outputs; ``atol`` is relative to 1 and the largest entry of each output at its time."""
    ends = np.cumsum([n] * 3 + [m] * 7)
    for got, wanted in zip(np.split(computed, ends, 1), np.split(np.array(expected), ends, 1), strict=True):
        most = rtol * np.abs(wanted) + atol * (1 + np.abs(wanted).max(axis=1, keepdims=True))
        assert np.all(np.abs(got - wanted) <= most)


def test_same_commands_as_the_node(compiled: tuple[Robot, Path], tmp_path: Path) -> None:
    """Clipped or refused by limits, with the state of damped springs, and held where a setpoint is refused."""
    subject, program = compiled
    arm = ElasticArm(subject)
    size = {"sea_planar_2r": 1.0, "vsa_planar_2r": 0.05, "shared": 0.1, "drives": 0.3}
    setpoints = list(stream(arm, size[subject.name]))
    # Within a turn beyond the range of sea_planar_2r, and further; the others have none.
    setpoints[60][1][0][0], setpoints[61][1][0][0] = 9.0, 90.0
    if subject.name == "drives":  # finite, but not in the counts of its drive
        setpoints[62][1][0][1] = 1e305
    write(setpoints, tmp_path / "setpoints")
    n, m, tools = subject.n, len(arm.motor_names), len(subject.tools)
    for policy, number, lead in (("clip", 3, 0.0), ("refuse", 2, 0.0), ("clip", 3, 2.5e-3)):
        solver = SetpointEvaluator(arm, lead=lead)
        succeed([program, str(number), "0", "0", "0", str(lead)], tmp_path)
        computed = np.fromfile(tmp_path / "commands").reshape(COUNT, 1 + 4 * n + 7 * m)
        far = subject.name == "sea_planar_2r"
        assert (computed[61, 0] == Status.HELD.value) == far and (policy == "refuse" or computed[60, 0] == 0)
        assert (computed[62, 0] == Status.HELD.value) == (subject.name == "drives")
        expected, statuses = [], []
        for stamp, rows in setpoints:
            try:
                expected.append(outputs(solver.evaluate(message(n, rows, tools), stamp=stamp, limit_policy=policy)))
                solver.commit()
                statuses.append(Status.FRESH.value)
            except StateError:
                statuses.append(Status.HELD.value)
        np.testing.assert_array_equal(computed[:, 0], statuses)
        fresh = computed[:, 0] == Status.FRESH.value
        compare(computed[fresh, 1:], expected, n, m, 1e-12, 1e-12)
        # Where a setpoint is refused, the values are those before it.
        held = np.flatnonzero(~fresh)
        np.testing.assert_array_equal(computed[held[held > 0], 1:], computed[held[held > 0] - 1, 1:])
        assert 3 <= len(held) < COUNT
        if far and policy == "clip":  # to the torque limit of the first motor
            efforts = computed[fresh, 1 + 3 * (n + m)]
            assert np.count_nonzero(efforts == efforts.max()) > 10


def test_lost_setpoints_as_in_the_node(compiled: tuple[Robot, Path], tmp_path: Path) -> None:
    """Stop and ramp from a motion with wrenches, commanded stiffness and dampers, with the status of each command."""
    subject, program = compiled
    arm = ElasticArm(subject)
    n, m, silent = subject.n, len(arm.motor_names), 250
    (stamp, rows), *_ = stream(arm, 0.05)
    limits = "ignore"
    if subject.name == "sea_planar_2r":  # from beyond the torque limit of the first motor, whose clipped effort ramps
        limits = "clip"
        efforts = [arm.feedforward(*x[:5], wrench=x[5:8]).motor_effort[0] for _, x in [*stream(arm, 1.0)][:50]]
        stamp, rows = [*stream(arm, 1.0)][int(np.argmax(efforts))]
    write([(stamp, rows)], tmp_path / "setpoints")
    late = round(TIMEOUT * 1e9) // PERIOD
    for policy in ("hold", "ramp"):
        settings = Settings(policy, TIMEOUT, stop_duration=STOP, ramp_duration=RAMP)
        succeed(
            [
                program,
                str(LIMIT_POLICIES.index(limits)),
                str(TIMEOUT),
                str(LOSS_POLICIES.index(policy)),
                str(silent),
                "0",
            ],
            tmp_path,
        )
        computed = np.fromfile(tmp_path / "commands").reshape(1 + silent, 1 + 4 * n + 7 * m)
        assert np.all(computed[:late, 0] == Status.FRESH.value)
        solver, dog = SetpointEvaluator(arm), Watchdog(arm, settings)
        dog.feed(solver.evaluate(message(n, rows, len(subject.tools)), stamp=stamp, limit_policy=limits))
        solver.commit()
        assert limits == "ignore" or computed[0, 1 + 3 * (n + m)] < max(efforts) - 1.0
        assert dog.lose("silence") and dog.stop_duration == settings.stop_duration
        order, seen, expected = list(range(n)), [], []
        for i in range(late, 1 + silent):
            response = dog.respond(stamp + i * PERIOD)
            solution = solver.command(order, *response.flow, stamp=stamp + round(response.s * 1e9), limit_policy=limits)
            solver.commit()
            expected.append(outputs(response.fade.of(solution) if response.fade else solution))
            seen.append(response.status)
        np.testing.assert_array_equal(computed[late:, 0], [status.value for status in seen])
        # Derivatives of the stop, of up to 1/T^4, amplify rounding of its coefficients.
        compare(computed[late:, 1:], expected, n, m, 0.0, 1e-11)
        assert seen[0] in (Status.STOPPING, Status.RAMPING) and seen[-1] is Status.HELD
