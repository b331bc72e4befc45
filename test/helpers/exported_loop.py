# SPDX-License-Identifier: Apache-2.0
"""The control loop of a robot's compiled library, as controllers run it."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from exported import CPP_STRICT, loop_sources, succeed, write
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.codegen.floating_programs import IMU_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.library import library
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES
from eom_dynamics.elastic.motor_programs import FRICTION_STATE, MOTOR_NAMES
from eom_dynamics.export import loop_library

NEVER = 2**63 - 1


def cycles_program(arm: Robot, folder: Path, *flags: str, changed: Mapping[str, str] | None = None) -> Path:
    """The program ``loop_cycles.cpp`` for the sizes of an arm, with files that are changed.

    Loops of thousands of cycles run faster with the little optimization of -Og, which takes no time to compile.
    """
    own = Path(__file__).parents[1] / "export"
    of_test = {name: (own / name).read_text() for name in ("loop_cycles.cpp", "checks.hpp")}
    write({**loop_sources(), **of_test, **(changed or {})}, folder)
    sizes = {"JOINTS": arm.n, "MOTORS": len(ElasticArm(arm).motor_names), "TOOLS": len(arm.tools)}
    defined = [f"-DEOM_{name}={size}" for name, size in sizes.items()]
    command = ["c++", *CPP_STRICT, "-Og", *flags, *defined, "-Iinclude", "-Isrc", "loop_cycles.cpp", "-o", "cycles"]
    succeed([*command, "-ldl", "-pthread"], folder)
    return folder / "cycles"


def passes_cycles(program: Path, library: Path, cycles: int) -> None:
    """Assert that the program finds nothing wrong with the loop of a robot."""
    lines = succeed([program, library, str(cycles)], program.parent).splitlines()
    assert len(lines) >= 50 and all(line.startswith(("ok", "none")) for line in lines), lines


class ExportedTable:
    """The table of a robot's compiled library, as the controller of every robot loads it."""

    def __init__(self, robot: Robot) -> None:
        self.arm, self.compiled = ElasticArm(robot), loop_library(robot)
        self._robot = ctypes.CDLL(str(self.compiled.path))
        self._robot.eom_robot_table.restype = ctypes.c_void_p
        self.address = self._robot.eom_robot_table()
        self.library = library()

    def prepare_payload(self) -> None:
        """Nothing: the library has all of its code."""

    prepare_drive_states = prepare_tools = prepare_observer = prepare_payload


class Loop:
    """The loop, without limits; :meth:`configure` begins anew."""

    def __init__(self, robot: Robot) -> None:
        self._table = ExportedTable(robot)
        self.configure()

    def configure(self, kp: ArrayLike = 0.0, kd: ArrayLike = 0.0) -> None:
        """Set gains of the motors."""
        self._loop = loop = ControlLoop(self._table)  # type: ignore[arg-type]
        loop.configure(safety="off", effort_on_deactivate="gravity")
        loop.configure(motor_kp=kp, motor_kd=kd)
        n, m = loop.arm.robot.n, len(loop.arm.motor_names)
        sizes = {"q": n, "qd": n, "motor_position": m, "motor_velocity": m}
        self._measured = loop.vectors("measured", sizes)
        (self._payload,) = loop.vectors("setpoint", {"P": 10 * len(loop.arm.robot.tools)}).values()

    def restart(self, *, motors: ArrayLike | None = None) -> str | None:
        """Restart from measured positions and velocities of the motors; returns the reason if there is no command."""
        self._measure(None, motors)
        reason: bytes | None = self._loop._library.loop_restart(self._loop.address, NEVER)
        return reason and reason.decode()

    def carry(self, mass: float, center: Sequence[float], inertia: float, time: float) -> str | None:
        """Set the payload of the first tool; returns an error, or None. The next cycle checks the blend time."""
        body = np.array([mass, *center, inertia, 0, 0, inertia, 0, inertia], dtype=float)
        reason: bytes | None = self._loop._library.loop_post_payload(self._loop.address, 0, body.ctypes.data, time)
        return reason and reason.decode()

    def number(self, name: str) -> float:
        return self._loop.number(name)

    def _measure(self, links: ArrayLike | None, motors: ArrayLike | None) -> None:
        for rows, names in ((links, ("q", "qd")), (motors, ("motor_position", "motor_velocity"))):
            for name, row in zip(names, () if rows is None else np.asarray(rows), strict=False):
                self._measured[name][:] = row
        self._loop._library.loop_measure(self._loop.address, links is not None, motors is not None)

    def cycle(
        self,
        now: int,
        reference: ArrayLike | None = None,
        *,
        base: ArrayLike | None = None,
        stamp: int | None = None,
        links: ArrayLike | None = None,
        motors: ArrayLike | None = None,
        **others: ArrayLike,
    ) -> SimpleNamespace:
        """Results of a cycle at a time, ns, with its status, -1 without a command, and the mass at the first tool.

        ``others`` are vectors of the reference, such as ``W``.
        """
        loop = self._loop
        if reference is not None:
            loop.rest(on_base=base is not None)
            rows = [*np.asarray(reference), *([] if base is None else np.asarray(base))]
            for name, row in zip((*STATE_NAMES, *IMU_NAMES[0], *IMU_NAMES[1]), rows, strict=False):
                loop.given[name][:] = row
            for name, values in others.items():
                loop.given[name][:] = np.ravel(values)
            loop.refer(now if stamp is None else stamp)
        self._measure(links, motors)
        code = loop.update(now, 1e-3)
        self._measure(None, None)
        loop.act("release")
        status = int(loop.status) if loop.number("valid") else -1
        found = {name: loop.setpoint[name] for name in ("q", "qd")}
        found |= {name: loop.command[name] for name in (*EFFORT_NAMES, *MOTOR_NAMES[:3])}
        found |= {"feedforward": loop.command["motor_effort"], "motor_effort": loop.sent[DRIVE_NAMES[2]]}
        found |= {"released": loop.sent_last[DRIVE_NAMES[2]], "friction_state": loop.setpoint[FRICTION_STATE]}
        copies = {name: row.copy() for name, row in found.items()}
        return SimpleNamespace(status=status, mass=float(self._payload[0]), refusal=Refusal(max(code, 0)), **copies)
