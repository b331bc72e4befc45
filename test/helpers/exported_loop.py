# SPDX-License-Identifier: Apache-2.0
"""Exported control loops of a robot: that of its type in C++, called cycle by cycle, and the table of its library."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from exported import compiled, with_values
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.export import loop_library
from eom_dynamics.export.cpp_project import type_name
from eom_dynamics.loop.library import library_for

DRIVER = """
#include <memory>
#include <eom/control_loop.hpp>
#include <eom/robots/@name@.hpp>

using Robot = eom::robots::@type@;
static std::unique_ptr<eom::ControlLoop<Robot>> loop;

template <class... Vectors>
static void take(const double *numbers, Vectors &...vectors)
{
    const auto one = [&](auto &vector) {
        for (auto &number : vector)
            number = *numbers++;
    };
    (one(vectors), ...);
}

static eom::Measurement<Robot> measurement(const double *links, const double *motors)
{
    eom::Measurement<Robot> measured;
    if ((measured.links = links != nullptr))
        take(links, measured.q, measured.qd);
    if ((measured.motors = motors != nullptr))
        take(motors, measured.motor_position, measured.motor_velocity);
    return measured;
}

#pragma GCC visibility push(default)
extern "C" {

double configure(const double *gains, double lead, int linearize)
{
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::ignore;
    parameters.effort_on_deactivate = eom::EffortOnDeactivate::gravity;
    parameters.linearize = linearize != 0;
    take(gains, parameters.motor_kp, parameters.motor_kd);
    if (lead >= 0)
        parameters.command_lead = lead;
    loop = std::make_unique<eom::ControlLoop<Robot>>();
    return loop->configure(parameters) ? -1 : parameters.command_lead;
}

const char *restart(const double *links, const double *motors) { return loop->restart(measurement(links, motors)); }

void carry(const double *body, double time)
{
    auto &payload = loop->payloads.draft();
    payload = {};
    payload.at_tool[0].mass = body[0];
    take(body + 1, payload.at_tool[0].center_of_mass, payload.at_tool[0].inertia);
    payload.blend_time = time;
    loop->payloads.send();
}

const char *payload_refusal() { return loop->payload_refusal(); }

int refused_payloads() { return static_cast<int>(loop->counts().refused_payloads); }

int refusal() { return static_cast<int>(loop->refusal()); }

int cycle(std::int64_t now, std::int64_t stamp, const double *reference, const double *base, const double *links,
          const double *motors, double *results)
{
    if (reference) {
        eom::Setpoint<Robot> x;
        take(reference, x.q, x.qd, x.qdd, x.qddd, x.qdddd);
        if ((x.on_base = base != nullptr))
            take(base, x.base.w, x.base.wd, x.base.wdd, x.base.wddd, x.base.f, x.base.fd, x.base.fdd);
        loop->refer(x, stamp);
    }
    const auto &y = loop->update(now, 1e-3, measurement(links, motors));
    *results++ = y.setpoint.P[0];
    for (const auto *row : {&y.setpoint.q, &y.setpoint.qd, &y.command.tau, &y.command.taud, &y.command.taudd})
        results = std::copy(row->begin(), row->end(), results);
    for (const auto *row : {&y.command.motor_position, &y.command.motor_velocity, &y.command.motor_acceleration,
                            &y.command.motor_effort, &y.motor_effort, &loop->release({}).effort})
        results = std::copy(row->begin(), row->end(), results);
    return y.valid ? static_cast<int>(y.status) : -1;
}
}
#pragma GCC visibility pop
"""

_OF_JOINTS = ("q", "qd", "tau", "taud", "taudd")
_OF_MOTORS = ("motor_position", "motor_velocity", "motor_acceleration", "feedforward", "motor_effort", "released")


def _pointer(values: ArrayLike | None) -> Any:
    if values is None:
        return None
    return np.ascontiguousarray(values, dtype=float).ctypes.data_as(ctypes.POINTER(ctypes.c_double))


class Loop:
    """The loop, without limits; :meth:`configure` begins anew."""

    def __init__(self, robot: Robot, functions: Sequence[str], folder: Path) -> None:
        exported, _ = with_values(robot, tuple(functions))
        text = DRIVER.replace("@name@", exported.name).replace("@type@", type_name(exported))
        # Hidden, since constants of another arm of the same name would be taken for these.
        compiled(robot, list(functions), text, folder, "-fPIC", "-shared", "-fvisibility=hidden")
        self._library, self._sizes = ctypes.CDLL(str(folder / "built")), (robot.n, len(exported.side.motor_names))
        self._library.configure.restype = ctypes.c_double
        self._library.restart.restype = self._library.payload_refusal.restype = ctypes.c_char_p

    def configure(self, *gains: Array, lead: float = -1.0, linearize: bool = False) -> float:
        """Take kp and kd of the motors, and a lead, s, or that of the robot; returns the lead."""
        rows = gains or np.zeros((2, self._sizes[1]))
        return float(self._library.configure(_pointer(rows), ctypes.c_double(lead), linearize))

    def restart(self, *, motors: ArrayLike | None = None) -> str | None:
        """Why there is no command, from measured positions and velocities of the motors, or None."""
        reason: bytes | None = self._library.restart(None, _pointer(motors))
        return reason and reason.decode()

    def carry(self, mass: float, center: Sequence[float], inertia: float, time: float) -> None:
        body = [mass, *center, inertia, 0, 0, inertia, 0, inertia]
        self._library.carry(_pointer(body), ctypes.c_double(time))

    def refused(self) -> tuple[str | None, int]:
        """Why the last payload was refused, or None, and the number of those."""
        reason: bytes | None = self._library.payload_refusal()
        return reason and reason.decode(), self._library.refused_payloads()

    def refusal(self) -> int:
        """Number of the reason why a reference was refused last."""
        return int(self._library.refusal())

    def cycle(
        self,
        now: int,
        reference: ArrayLike | None = None,
        *,
        base: ArrayLike | None = None,
        stamp: int | None = None,
        links: ArrayLike | None = None,
        motors: ArrayLike | None = None,
    ) -> SimpleNamespace:
        """Results of a cycle at a time, ns, with its status, -1 without a command, and the mass at the first tool."""
        n, m = self._sizes
        results = np.empty(1 + n * len(_OF_JOINTS) + m * len(_OF_MOTORS))
        times = (ctypes.c_int64(x) for x in (now, now if stamp is None else stamp))
        status = self._library.cycle(*times, *map(_pointer, (reference, base, links, motors, results)))
        joints, motor_rows = np.split(results[1:], [n * len(_OF_JOINTS)])
        rows = [*joints.reshape(-1, n), *motor_rows.reshape(-1, m)]
        return SimpleNamespace(
            status=status, mass=results[0], **dict(zip((*_OF_JOINTS, *_OF_MOTORS), rows, strict=True))
        )


class ExportedTable:
    """The table of a robot's compiled library, as the controller of every robot loads it."""

    def __init__(self, robot: Robot, *, moving_base: bool = False) -> None:
        self.arm, path = ElasticArm(robot), loop_library(robot, moving_base=moving_base).path
        self._robot = ctypes.CDLL(str(path))
        self._robot.eom_robot_table.restype = ctypes.c_void_p
        self.address = self._robot.eom_robot_table()
        self.library = library_for(robot.n, len(self.arm.motor_names), len(robot.tools))

    def prepare_payload(self) -> None:
        """Nothing: the library has all of its code."""
