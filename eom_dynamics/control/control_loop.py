# SPDX-License-Identifier: Apache-2.0
"""The control loop of an arm, cycle by cycle: eom/control_loop.hpp, called from Python."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import STATE_NAMES, Array
from ..exceptions import StateError
from ..robot import Payload
from ..trajectory import Spline
from ..vectors import AXES, JOINTS, MOTORS, TOOLS, of_part
from .headers import enumerators, loop_headers, source, table_rows
from .online_trajectory import MotionLimits
from .robot_table import RobotTable, raise_reason
from .settings import CHOICES, DEFAULTS, MODES, Status, settings_at


def _refusals() -> dict[str, str]:
    """Rows of EOM_REFUSALS of eom/reasons.hpp by name, with their first texts."""
    text = loop_headers()["include/eom/reasons.hpp"].replace("\\\n", "")
    rows = re.findall(r'X\((\w+), ((?:"[^"]*"\s*)+),', text)
    return {name: "".join(re.findall(r'"([^"]*)"', parts)) for name, parts in rows}


REFUSALS = _refusals()
"""What is said of refusals, where a quantity of a joint or motor is known: with the fields of eom::Reason in braces."""

Refusal = IntEnum("Refusal", [*REFUSALS], start=0)  # type: ignore[misc]
Refusal.__doc__ = "Why a reference was refused."

Check = IntEnum("Check", enumerators(source("reasons.hpp"), "Check"), start=0)  # type: ignore[misc]
Check.__doc__ = "Checks that find a setpoint not plausible, eom::Check."

OffPath = IntEnum("OffPath", enumerators(source("loop_parameters.hpp"), "OffPath"), start=0)  # type: ignore[misc]
OffPath.__doc__ = "Source of a motion that has no path, as eom::OffPath."


class Reason(ctypes.Structure):
    """First members of eom::Reason."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("refusal", "quantity")),
        ("place", ctypes.c_size_t),
        *((name, ctypes.c_double) for name in ("value", "limit", "time", "ratio")),
        ("others", ctypes.c_char * 48),
    )


SUSPICIONS = {check.strip('"'): name for name, check in table_rows(source("loop_parameters.hpp"), "EOM_SUSPICIONS")}
"""Counts of setpoints that are not plausible, by check: EOM_SUSPICIONS of eom/loop_parameters.hpp."""

_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "double": ctypes.c_double,
    "std::int64_t": ctypes.c_int64,
    "std::size_t": ctypes.c_uint64,
}
"""Of members of eom::LoopState; others are enumerations."""


def _members() -> list[tuple[str, Any]]:
    """Numbers of eom::LoopState, and the counts after them, with their types."""
    text = source("loop_parameters.hpp")
    state, counts = (re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)", text) for name in ("EOM_STATE", "EOM_COUNTS"))
    assert state is not None and counts is not None
    numbers = re.findall(r"X\(([\w:]+), (\w+),", state.group(1))
    members = [(name, _TYPES.get(kind, ctypes.c_int)) for kind, name in numbers]
    names = [*re.findall(r"X\((\w+)\)", counts.group(1)), *SUSPICIONS.values()]
    return [*members, *((name, ctypes.c_uint64) for name in names)]


class LoopRecord(ctypes.Structure):
    """Numbers of a loop after a cycle, eom::LoopState; to NumPy a structured record of ``np.dtype(LoopRecord)``."""

    _fields_ = _members()


EXCEEDS, SUSPECT = 1, 2
"""Bits: a command exceeds limits, a setpoint is not plausible."""

_NEVER = 2**63 - 1
"""A time of the clock, ns, that is not known."""


class LoopHandle:
    """A loop in the memory of its library, which is freed with the last of its vectors."""

    def __init__(self, table: RobotTable) -> None:
        self.table, self.library = table, table.library  # the loop reads the table
        self.address: int = table.library.loop_make(table.address)

    def __del__(self) -> None:
        self.library.loop_free(self.address)

    def vectors(self, whose: str, sizes: dict[str, int]) -> dict[str, Array]:
        """Arrays over vectors of the loop, see eom_loop_vector(), by name with their sizes."""
        vectors = {}
        for name, size in sizes.items():
            address = self.library.loop_vector(self.address, whose.encode(), name.encode())
            memory: Any = (ctypes.c_double * size).from_address(address)
            memory.owner = self
            vectors[name] = np.frombuffer(memory)
        return vectors


def _state_of(vectors: dict[str, Array]) -> Array:
    """View q … qdddd (5, n) of the vectors of a motion, which follow one another."""
    first, second = (vectors[name] for name in STATE_NAMES[:2])
    shape, strides = (len(STATE_NAMES), len(first)), (second.ctypes.data - first.ctypes.data, first.itemsize)
    view: Array = np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)
    return view


class ControlLoop:
    """The control loop of an arm.

    A cycle takes a reference, or none, and writes what is commanded. Vectors are arrays over the memory of the loop:
    those of ``given`` are to be written before :meth:`refer`, others change with each cycle.

    Attributes:
        table: of the robot.
        arm: the arm.
        handle: of its memory, with the method ``vectors``.
        address, size: of the loop in memory, for compiled calls; the size in bytes.
        given_address: of the setpoint in memory that is to be written.
        given: vectors of the setpoint to be referred to, by name: STATE_NAMES, WRENCH_NAMES, STIFFNESS_NAMES.
        setpoint: of the setpoint that is followed, likewise.
        given_state, state: q … qdddd (5, n) of both.
        settings: their defaults, and those that have been set.
        command, exceeded, released: of the command, EFFORT_NAMES and MOTOR_NAMES; of the last one beyond limits, before
            the gate clipped it or it was refused; and of the last one of the action ``release``.
        sent, sent_last: what drives are sent for the command, and for ``released``, DRIVE_NAMES and SENT_NAMES.
    """

    def __init__(self, table: RobotTable) -> None:
        """Make a loop of a robot."""
        self.table, self.arm = table, table.arm
        arm = self.arm
        self.settings: dict[str, Any] = dict(DEFAULTS)
        self.handle = LoopHandle(table)
        self._library, self.address, self.vectors = self.handle.library, self.handle.address, self.handle.vectors
        state = ctypes.create_string_buffer(self._library.state_size())
        self._record, self._place = LoopRecord.from_buffer(state), ctypes.addressof(state)
        self._read = self._library.loop_state
        self.size: int = self._library.loop_size(self.address)
        self.given_address: int = self._library.loop_rest(self.address, 0)
        n, m, tools = arm.robot.n, len(arm.motor_names), len(arm.robot.tools)
        sizes = {JOINTS: n, MOTORS: m, TOOLS: 6 * tools, AXES: 3}
        motion, base, command, sent = (
            {name: sizes[of] for name, of in of_part(part).items()} for part in ("setpoint", "base", "command", "sent")
        )
        self.given, self.setpoint = self.vectors("given", motion | base), self.vectors("setpoint", motion | base)
        self.command = self.vectors("command", command)
        self.exceeded = self.vectors("exceeded", command | dict.fromkeys((*STATE_NAMES, "k"), n))
        self.released = self.vectors("released", command)
        self.sent, self.sent_last = self.vectors("sent", sent), self.vectors("released", sent)
        self.given_state, self.state = _state_of(self.given), _state_of(self.setpoint)

    def function_address(self, name: str) -> int:
        """Address of a function of eom/loop.h, such as ``loop_update``, for compiled calls."""
        address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        assert address is not None
        return address

    def configure(self, safety: str = "", **settings: Any) -> None:
        """Set settings of eom::LoopSettings, from the next cycle on; others stay.

        Args:
            safety: level whose settings are set, too, unless they are given: a key of SAFETY.

        Raises:
            StateError: a setting is beyond its range, or there is no such level.
        """
        if safety:
            settings = settings_at(safety) | settings
        for name, value in settings.items():
            if name in CHOICES:
                value = CHOICES[name].index(value) if value in CHOICES[name] else -1
            if name == "tool_stiffness" and np.any(value):
                self.table.prepare_tools()
            numbers = np.array(value, dtype=float, ndmin=1)
            size = {"stiffness": self.arm.robot.n, "tool_stiffness": 6}.get(name, len(numbers))
            if len(numbers) not in (1, size):
                raise StateError(f"{name} must have {size} entries, has {len(numbers)}")
            reason = self._library.loop_set(self.address, name.encode(), numbers.ctypes.data, len(numbers))
            raise_reason(reason, name)
        if reason := self._library.loop_configure(self.address):
            raise StateError(reason.decode())
        self.settings |= settings

    def restart(self, q: Array | None = None, now: int = _NEVER) -> None:
        """Restart at clock time now, ns, and hold the arm at q (n,), or, without q, where it was sensed, if it was."""
        self.measure(None if q is None else np.stack([q, np.full_like(q, np.nan)]))
        self._library.loop_restart(self.address, now)
        self.measure()

    def locate(self, now: int, q: Array | None = None, *, ends: bool = False) -> bool:
        """Have what begins now begin where the arm is measured, at q (n,), if it is away from the last command.

        That is after 0.1 s without a command. While commands go on, targets and trajectories of this time are refused.

        Args:
            now: time of the clock, ns.
            q: None for what :meth:`measure` was given, or what was sensed.
            ends: before the action ``release``: also while commands go on.

        Returns:
            Whether it does not follow its commands, which go on.
        """
        if q is not None:
            self.measure(np.stack([q, np.full_like(q, np.nan)]))
        strays = bool(self._library.loop_locate(self.address, now, ends))
        if q is not None:
            self.measure()
        return strays

    def sense(self, time: int, sensors: int) -> int:
        """Take what was measured at a time, ns, in vectors ``sensed``: bits and result of eom_loop_sense()."""
        return int(self._library.loop_sense(self.address, time, sensors))

    def rest(self, *, on_base: bool = False) -> bytes:
        """Have what is ``given`` be at rest at zero, on a base that moves or not; return a copy of its memory."""
        memory: int = self._library.loop_rest(self.address, on_base)
        return ctypes.string_at(memory, self._library.setpoint_size(self.address))

    def refer(self, stamp: int) -> None:
        """Take what is ``given`` as the reference of the next cycle; stamp in ns, 0 for none."""
        self._library.loop_refer(self.address, stamp)

    def update(self, now: int, period: float = 1e-3) -> int:
        """Run a cycle at a time of the clock, ns, of a period, s.

        Returns:
            Why the reference was refused, a :class:`Refusal`; 0 if it was not; or negative with bits of what is wrong
            with it all the same: EXCEEDS, SUSPECT.
        """
        return int(self._library.loop_update(self.address, now, period))

    def answer(
        self, times: NDArray[np.int64], names: Sequence[str], rows: Array, wanted: Sequence[Array], results: Array
    ) -> NDArray[np.int32]:
        """Answer N setpoints with stamps and at ``times`` of the clock (2, N), ns, until one is refused.

        Args:
            names: vectors that the rows of ``given`` (N, …), row-major, have one after the other; others stay.
            wanted: vectors of the loop, to be written to the rows of ``results`` (N, …) after each cycle.

        Returns:
            What :meth:`update` returns, for each setpoint that was answered, and for that which was refused.
        """
        codes = np.empty(len(rows), dtype=np.int32)
        read, written = (
            np.array([(x.ctypes.data, len(x)) for x in vectors], dtype=np.uint64)
            for vectors in ([self.given[name] for name in names], wanted)
        )
        stamps, clock = (row.ctypes.data for row in times)
        of_vectors = (read.ctypes.data, len(read), rows.ctypes.data, written.ctypes.data, len(written))
        place = self.address, len(rows), stamps, clock, *of_vectors, results.ctypes.data, codes.ctypes.data
        return codes[: self._library.loop_answer(*place)]

    @property
    def record(self) -> LoopRecord:
        """Numbers of the loop at present; the next record takes its place."""
        self._read(self.address, self._place)
        return self._record

    def number(self, name: str) -> float:
        """A number of the :attr:`record`, such as ``playing``; NaN for another name."""
        return float(getattr(self.record, name, np.nan))

    def text(self, what: str) -> str:
        """A sentence of the loop, see eom_loop_text(): ``refusal``, ``finding``, ``overload``, ``slowed``,
        or the fault of what is measured: ``measurement``, ``sample``.
        """
        return str(self._library.loop_text(self.address, what.encode()).decode())

    def violations(self, most: int = sys.maxsize) -> list[tuple[Reason, list[str]]]:
        """Limits that the last command beyond limits exceeds, the worst first.

        Args:
            most: how many of them are needed; each takes some microseconds.

        Returns:
            Each as members of eom::Reason, and name of its joint or motor, quantity, unit and remark.
        """
        violations: list[tuple[Reason, list[str]]] = []
        row = Reason()
        while len(violations) < most and (
            texts := self._library.loop_violation(self.address, len(violations), ctypes.byref(row))
        ):
            violations.append((row, texts.decode().split("\x1f")))
            row = Reason()
        return violations

    @property
    def status(self) -> Status:
        """What the command answers."""
        return Status(self.record.status)

    def carry(self, payload: Payload, blend_time: float, q: Array | None = None) -> None:
        """Have a tool carry a payload from the next setpoint on; efforts pass to the new ones in a time, s.

        The code for payloads is compiled for the first one.

        Args:
            q: where the arm is measured (n,), by which the payload is judged while nothing is commanded.

        Raises:
            RobotDescriptionError: the robot has no such tool, or no body has this mass and inertia.
            StateError: the time is not usable, too many changes are under way, or the arm cannot hold it where it is,
                or pass to it in that time, within limits that are refused.
        """
        tool, parameters = payload.at_tool(self.arm.robot)
        self.table.prepare_payload()
        numbers = np.ascontiguousarray(parameters)
        if q is not None:
            self.measure(np.stack([q, np.full_like(q, np.nan)]))
        reason = self._library.loop_carry(self.address, tool, numbers.ctypes.data, blend_time)
        if q is not None:
            self.measure()
        if reason:
            raise StateError(": ".join(filter(None, [self.text("overload"), reason.decode()])))

    def send_trajectory(self, motion: Spline, origin: int, held: NDArray[np.bool_] | None = None) -> None:
        """Send a motion, its time 0 at ``origin``, ns, to be planned; StateError if it cannot be used.

        Joints ``held`` (n,) stay where they are commanded at its start, whatever their motion.
        """
        knots = np.ascontiguousarray(motion.t)
        states = np.array(motion.states) if held is None else np.where(held, np.nan, motion.states)
        reason = self._library.loop_post_spline(self.address, origin, knots.ctypes.data, len(knots), states.ctypes.data)
        if reason:
            raise StateError(reason.decode())

    def limit(self, limits: MotionLimits, period: float) -> None:
        """Set limits of the motion to targets, and the period of its cycles, s; StateError while a target leads."""
        rows = limits.rows(period)
        reason = self._library.loop_limit(self.address, rows.ctypes.data, len(rows))
        if reason:
            raise StateError(reason.decode())

    def aim(
        self,
        now: int,
        positions: Array,
        velocities: Array | None = None,
        times: Array | None = None,
        origin: int = 0,
        *,
        accelerations: Array | None = None,
    ) -> int:
        """Aim at a target from the cycle of a time, ns, on, in place of what leads, see :class:`.OnlineTrajectory`.

        While it moves, setpoints are refused; at rest, those within ``start_tolerance`` lead again.

        Args:
            positions: (n,), NaN for joints whose targets stay; of a chunk (K, n).
            velocities: (n,) with which the target moves on.
            times: (K,) of a chunk, s, after ``origin``, ns, 0 for now.
            accelerations: (n,) of the target.

        Returns:
            Why it was refused, a :class:`Refusal`; 0 if it was not.

        Raises:
            StateError: numbers that are not finite, or times that do not increase.
        """
        arrays = [
            None if x is None else np.ascontiguousarray(x, dtype=float)
            for x in (times, positions, velocities, accelerations)
        ]
        t, q, qd, qdd = (None if x is None else x.ctypes.data for x in arrays)
        knots = 0 if times is None else len(times)
        if reason := self._library.loop_post_target(self.address, origin, t, knots, q, qd, qdd):
            raise StateError(reason.decode())
        return int(self._library.loop_aim(self.address, now))

    def speed(self, factor: float) -> None:
        """Scale the speed of motions that are played, 0 to 1.5, on their paths and within limits, from now on.

        Each change is the shortest within limits of joints and motors, at least ``stop_duration`` from 1 to 0. Where
        they do not allow it yet, it comes later, and above 1 a part of it may: see :meth:`number` ``pace_limited``.

        Raises:
            StateError: the factor is out of range.
        """
        if reason := self._library.loop_post_speed(self.address, factor):
            raise StateError(f"{reason.decode()}, is {factor:g}")

    def change_mode(self, mode: str) -> None:
        """Change the mode, one of :data:`.MODES`, once what is measured suffices, without a step of efforts.

        Raises:
            StateError: there is no such mode, or the mode impedance has no stiffness.
        """
        self.configure(mode=mode)
        self._library.loop_post_mode(self.address, MODES.index(mode))

    def measure(self, q: Array | None = None, motors: Array | None = None) -> None:
        """Take positions and velocities of links (2, n), and of motors (2, m) in drive units, for the next cycles."""
        for rows, names in ((q, ("q", "qd")), (motors, ("motor_position", "motor_velocity"))):
            if rows is not None:
                measured = self.vectors("measured", dict.fromkeys(names, len(rows[0])))
                for name, row in zip(names, rows, strict=True):
                    measured[name][:] = row
        self._library.loop_measure(self.address, q is not None, motors is not None)

    def plan(self, now: int, period: float) -> int | None:
        """Plan the trajectory that was sent, or whose start has come, at a time, ns, for commands of a period, s.

        It is played, or waits for its start, in place of another one that waits.

        Returns:
            0 for that; why it was refused, a :class:`Refusal`; or None if there is nothing to plan.
        """
        result = int(self._library.loop_plan(self.address, now, period))
        return None if result < 0 else result

    def delay(self, time: int) -> None:
        """Have the trajectory that waits begin later by a time, ns, for which the clock of its start stood still."""
        self._library.loop_delay(self.address, time)

    def act(self, action: str) -> None:
        """Take an action.

        Args:
            action: ``halt`` what is played and what waits, with the last command; ``stop`` both, and bring the arm to
                rest in the next cycles, whatever the settings, on the path of a motion that is played, where limits
                allow it; ``pause`` motions on their paths, and ``resume`` them; ``lose`` setpoints, with the response
                of the settings; or ``release``: write what is sent last when the loop is switched off to ``released``
                and ``sent_last``.
        """
        raise_reason(self._library.loop_act(self.address, action.encode()), action)


def rows(vectors: dict[str, Array], names: Sequence[str]) -> Array:
    """A copy of some vectors of one size, (number of them, size)."""
    return np.stack([vectors[name] for name in names])
