# SPDX-License-Identifier: Apache-2.0
"""Control loop of an arm, run cycle by cycle from Python (eom/control_loop.hpp)."""

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
"""Messages of refusals by name, with the fields of eom::Reason in braces, for a known quantity of a joint or motor."""

Refusal = IntEnum("Refusal", [*REFUSALS], start=0)  # type: ignore[misc]
Refusal.__doc__ = "Reason of a refused reference, eom::Refusal."

Check = IntEnum("Check", enumerators(source("reasons.hpp"), "Check"), start=0)  # type: ignore[misc]
Check.__doc__ = "Stream check of setpoints, eom::Check."

OffPath = IntEnum("OffPath", enumerators(source("loop_parameters.hpp"), "OffPath"), start=0)  # type: ignore[misc]
OffPath.__doc__ = "Source of a motion without a path, eom::OffPath."


class Reason(ctypes.Structure):
    """First members of eom::Reason."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("refusal", "quantity")),
        ("place", ctypes.c_size_t),
        *((name, ctypes.c_double) for name in ("value", "limit", "time", "ratio")),
        ("others", ctypes.c_char * 48),
    )


SUSPICIONS = {check.strip('"'): name for name, check in table_rows(source("loop_parameters.hpp"), "EOM_SUSPICIONS")}
"""Names of the counts of failed stream checks, by check: EOM_SUSPICIONS of eom/loop_parameters.hpp."""

_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "double": ctypes.c_double,
    "std::int64_t": ctypes.c_int64,
    "std::size_t": ctypes.c_uint64,
}
"""Types of members of eom::LoopState by their C++ names; other members are enumerations."""


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
"""Unknown time of the clock, ns."""


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
    """Control loop of an arm.

    A cycle processes a reference, if there is one, and writes the command. Vectors are arrays over the memory of the
    loop: write ``given`` before :meth:`refer`; all others change with each cycle.

    Attributes:
        table: robot table.
        arm: the arm.
        handle: memory of the loop, with the method ``vectors``.
        address, size: memory of the loop, for compiled calls; size in bytes.
        given_address: memory of ``given``.
        given: vectors of the next reference by name: STATE_NAMES, WRENCH_NAMES, STIFFNESS_NAMES.
        setpoint: vectors of the present setpoint, with the same names.
        given_state, state: q … qdddd (5, n) of ``given`` and ``setpoint``.
        settings: present settings.
        command: computed command vectors, EFFORT_NAMES and MOTOR_NAMES; without feedback, and before the gate, which
            makes changes of mode and source continuous.
        exceeded: last command beyond limits, before it was clipped or refused, with its state and stiffness.
        released: final command, written by the action ``release``.
        sent, sent_last: what drives get for ``command`` and ``released``, DRIVE_NAMES and SENT_NAMES.
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
        """Set members of eom::LoopSettings, effective from the next cycle. Other settings are unchanged.

        Args:
            safety: safety level, a key of SAFETY, for the defaults of settings that are not given.

        Raises:
            StateError: a setting is out of range, or the level is unknown.
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
        """Restart at clock time ``now``, ns, and hold the arm at q (n,), or at its last sensed position without q."""
        self.measure(None if q is None else np.stack([q, np.full_like(q, np.nan)]))
        self._library.loop_restart(self.address, now)
        self.measure()

    def locate(self, now: int, q: Array | None = None, *, ends: bool = False) -> bool:
        """Start the next motion from the measured position q (n,) if the arm deviates from its last command.

        This applies after 0.1 s without a command. While commands continue, an arm that deviates does not follow them:
        targets and trajectories in this cycle are refused.

        Args:
            now: clock time, ns.
            q: measured position; by default from :meth:`measure` or :meth:`sense`.
            ends: True before the action ``release``: start from q even if commands continue.

        Returns:
            True if the arm does not follow its commands.
        """
        if q is not None:
            self.measure(np.stack([q, np.full_like(q, np.nan)]))
        strays = bool(self._library.loop_locate(self.address, now, ends))
        if q is not None:
            self.measure()
        return strays

    def sense(self, time: int, sensors: int) -> int:
        """Process the sample in the vectors ``sensed``, of ``time``, ns; returns the result of eom_loop_sense()."""
        return int(self._library.loop_sense(self.address, time, sensors))

    def rest(self, *, on_base: bool = False) -> bytes:
        """Set ``given`` to rest at zero, with or without a base motion; returns a copy of its memory."""
        memory: int = self._library.loop_rest(self.address, on_base)
        return ctypes.string_at(memory, self._library.setpoint_size(self.address))

    def refer(self, stamp: int) -> None:
        """Use ``given`` as the reference of the next cycle; ``stamp`` in ns, 0 for no stamp."""
        self._library.loop_refer(self.address, stamp)

    def update(self, now: int, period: float = 1e-3) -> int:
        """Run one cycle at clock time ``now``, ns, with the given period, s.

        Returns:
            Reason of a refused reference, a :class:`Refusal`; otherwise 0, or the negative sum of bits for warnings:
            EXCEEDS, SUSPECT.
        """
        return int(self._library.loop_update(self.address, now, period))

    def answer(
        self, times: NDArray[np.int64], names: Sequence[str], rows: Array, wanted: Sequence[Array], results: Array
    ) -> NDArray[np.int32]:
        """Process N setpoints with stamps and clock times ``times`` (2, N), ns, up to the first refusal.

        Args:
            names: vectors of ``given`` to fill from consecutive entries of each row of ``rows`` (N, …), row-major.
            wanted: vectors of the loop to append to each row of ``results`` (N, …) after its cycle.

        Returns:
            Results of :meth:`update`, up to and including the refused setpoint.
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
        """Present numbers of the loop, in memory that the next record overwrites."""
        self._read(self.address, self._place)
        return self._record

    def number(self, name: str) -> float:
        """Number of the :attr:`record` by name, for example ``playing``; NaN for an unknown name."""
        return float(getattr(self.record, name, np.nan))

    def text(self, what: str) -> str:
        """Message of the loop, "" if there is none (see eom_loop_text()): ``refusal``, ``finding``, ``overload``,
        ``slowed``, or a measurement fault: ``measurement``, ``sample``.
        """
        return str(self._library.loop_text(self.address, what.encode()).decode())

    def violations(self, most: int = sys.maxsize) -> list[tuple[Reason, list[str]]]:
        """Violated limits of the last command beyond limits, the worst first.

        Args:
            most: maximum number; each takes some microseconds.

        Returns:
            For each violation, the first members of eom::Reason, and joint or motor name, quantity, unit and remark.
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
        """Status of the last command."""
        return Status(self.record.status)

    def stop_utilization(self) -> float:
        """Largest utilization of a limit in a joint stop from the last command; 0 without a command.

        Infinite if motors cannot realize the stop. Takes up to some milliseconds.
        """
        return float(self._library.loop_stop_utilization(self.address))

    def carry(self, payload: Payload, blend_time: float, q: Array | None = None) -> None:
        """Set the payload of a tool, effective from the next setpoint.

        The code for payloads is compiled at the first call.

        Args:
            payload: payload of the tool.
            blend_time: minimum time of the change of efforts, s.
            q: measured position (n,), at which the limits are checked if there is no command.

        Raises:
            RobotDescriptionError: unknown tool, or physically inconsistent inertia.
            StateError: invalid blend time, or an arm that cannot hold the payload (with ``limits: refuse``).
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
        """Send a motion for planning, with its time 0 at ``origin``, ns; StateError if it is invalid.

        Joints ``held`` (n,) keep the positions that are commanded at its start.
        """
        knots = np.ascontiguousarray(motion.t)
        states = np.array(motion.states) if held is None else np.where(held, np.nan, motion.states)
        reason = self._library.loop_post_spline(self.address, origin, knots.ctypes.data, len(knots), states.ctypes.data)
        if reason:
            raise StateError(reason.decode())

    def limit(self, limits: MotionLimits, period: float) -> None:
        """Set limits of the motion to targets and its cycle period, s; StateError while a target is active."""
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
        """Start the motion to a target at the cycle ``now``, ns; it replaces the active motion.

        See :class:`.OnlineTrajectory`. During the motion, setpoints are refused; at rest, setpoints within
        ``start_tolerance`` are followed again.

        Args:
            now: clock time of the cycle, ns.
            positions: (n,), NaN for joints that keep their targets; (K, n) for a chunk.
            velocities: (n,) target velocities.
            times: (K,) of a chunk, s, relative to ``origin``.
            origin: clock time, ns; 0: ``now``.
            accelerations: (n,) target accelerations.

        Returns:
            0, or the reason of a refusal, a :class:`Refusal`.

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
        """Scale the speed of active motions along their paths by a factor from 0 to 1.

        A change takes 0.3 to 3 s, and at least ``stop_duration``. It ends before the next change starts, and starts
        once limits of joints and motors allow it. An increase may be partial (:meth:`number` ``pace_limited``).

        Raises:
            StateError: the factor is out of range.
        """
        if reason := self._library.loop_post_speed(self.address, factor):
            raise StateError(f"{reason.decode()}, is {factor:g}")

    def change_mode(self, mode: str) -> None:
        """Set the control mode, one of :data:`.MODES`, as soon as measurements suffice, without an effort step.

        Raises:
            StateError: unknown mode, or no stiffness for impedance mode.
        """
        self.configure(mode=mode)
        self._library.loop_post_mode(self.address, MODES.index(mode))

    def measure(self, q: Array | None = None, motors: Array | None = None) -> None:
        """Set measured positions and velocities of links (2, n), and motors (2, m) in drive units, for later cycles.

        The code that converts from drive units is compiled at the first call with motors.
        """
        if motors is not None:
            self.table.prepare_drive_states()
        for rows, names in ((q, ("q", "qd")), (motors, ("motor_position", "motor_velocity"))):
            if rows is not None:
                measured = self.vectors("measured", dict.fromkeys(names, len(rows[0])))
                for name, row in zip(names, rows, strict=True):
                    measured[name][:] = row
        self._library.loop_measure(self.address, q is not None, motors is not None)

    def plan(self, now: int, period: float) -> int | None:
        """Plan the posted trajectory, or the queued one if its start has come, for cycles of ``period`` s.

        It starts at ``now``, ns, or is queued until its start, replacing the queued trajectory.

        Returns:
            0, the reason of a refusal, a :class:`Refusal`, or None if there is nothing to plan.
        """
        result = int(self._library.loop_plan(self.address, now, period))
        return None if result < 0 else result

    def delay(self, time: int) -> None:
        """Delay the queued trajectory by ``time`` ns, for example while its clock stood still."""
        self._library.loop_delay(self.address, time)

    def act(self, action: str) -> None:
        """Execute an action.

        Args:
            action: ``halt``: end active and queued motions at the last command. ``stop``: end both, and stop the arm
                in the next cycles, on the path of the active trajectory if limits allow it. ``pause``, ``resume``:
                pause or resume motions on their paths. ``lose``: respond to lost setpoints by the settings.
                ``release``: write the final command to ``released`` and ``sent_last``.
        """
        raise_reason(self._library.loop_act(self.address, action.encode()), action)


def rows(vectors: dict[str, Array], names: Sequence[str]) -> Array:
    """Copy of vectors of equal size as an array (number of vectors, size)."""
    return np.stack([vectors[name] for name in names])
