# SPDX-License-Identifier: Apache-2.0
"""Control loop behind its C interface, as run by controllers, and a record of its commands."""

import ctypes
from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import MotionLimits, motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from eom_dynamics.elastic.motor_programs import MOTOR_NAMES
from eom_dynamics.trajectory import Spline

MS = 1_000_000
START = 1_700_000_000_000_000_000
NEVER = 2**63 - 1

NUMBERS = (
    *("status", "valid", "playing", "aiming", "stopping", "held", "lost", "mode", "touched"),
    *("followed", "refused", "stop_end", "paused", "loaded", "waiting", "pace", "path_time"),
)
"""Numbers of the loop that are recorded in each cycle."""

_numbers_of = attrgetter(*NUMBERS)


@cache
def table_of(robot: str | Robot) -> RobotTable:
    """Table of a packaged robot, by its name, or of another robot."""
    return RobotTable(ElasticArm(load_robot(robot) if isinstance(robot, str) else robot))


@cache
def _limits_of(arm: ElasticArm, targets: tuple[tuple[str, Any], ...]) -> MotionLimits:
    """Limits of motions to targets; numbers or tuples of ``targets`` override the robot's limits."""
    return motion_limits(arm, {name: np.array(row) if isinstance(row, tuple) else row for name, row in targets} or None)


class Recorder:
    """Rows of the commands of a loop, cycle by cycle.

    Attributes:
        loop: the loop.
        count: number of cycles so far.
        numbers: NUMBERS of each cycle.
    """

    def __init__(self, loop: ControlLoop, cycles: int) -> None:
        self.loop, self.count = loop, 0
        self.numbers: list[tuple[float, ...]] = []
        payload = dict.fromkeys(("P", "Pd"), 10 * len(loop.arm.robot.tools))
        groups = {
            "setpoint": (loop.setpoint | loop.vectors("setpoint", payload), (*STATE_NAMES, "W", "k", *payload)),
            "command": (loop.command, (*EFFORT_NAMES, *MOTOR_NAMES)),
            "sent": (loop.sent, (*DRIVE_NAMES, *SENT_NAMES)),
        }
        found = [
            (vectors[name].ctypes.data, vectors[name].nbytes) for vectors, names in groups.values() for name in names
        ]
        begin, end = min(at for at, _ in found), max(at + size for at, size in found)
        memory: Any = (ctypes.c_double * ((end - begin) // 8)).from_address(begin)
        memory.owner = loop.handle
        self._window = np.frombuffer(memory)
        self.places = {
            group: {name: ((vectors[name].ctypes.data - begin) // 8, vectors[name].size) for name in names}
            for group, (vectors, names) in groups.items()
        }
        self._resize(cycles)

    def _resize(self, cycles: int) -> None:
        before = self.count and (self.rows, self.times, self.codes, self.given)
        self.rows = np.zeros((cycles, len(self._window)))
        self.times, self.codes = np.zeros(cycles, dtype=np.int64), np.zeros(cycles, dtype=np.int32)
        self.given = np.zeros(cycles, dtype=bool)
        if before:
            for new, old in zip((self.rows, self.times, self.codes, self.given), before, strict=True):
                new[: self.count] = old

    def keep(self, now: int, code: int, given: bool) -> None:
        """Record a cycle at ``now``, ns, with its result; ``given``: it had a setpoint."""
        if self.count == len(self.rows):
            self._resize(2 * self.count)
        k = self.count
        self.times[k], self.codes[k], self.given[k] = now, code, given
        self.rows[k] = self._window
        self.numbers.append(_numbers_of(self.loop.record))
        self.count += 1


class Record:
    """Commands of a loop in N cycles.

    Attributes:
        time, period: of the clock, ns (N,).
        code: result of each cycle (N,).
        given: whether a setpoint was given (N,).
        numbers: by NUMBERS, each (N,).
        setpoint, command, sent: vectors by name, each (N, size).
    """

    def __init__(self, rig: Recorder, first: int = 0) -> None:
        last = rig.count
        self.time, self.code = rig.times[first:last].copy(), rig.codes[first:last].copy()
        self.given = rig.given[first:last].copy()
        self.numbers = dict(zip(NUMBERS, np.array(rig.numbers[first:last], dtype=float).T.copy(), strict=True))
        self.setpoint, self.command, self.sent = (
            {name: rig.rows[first:last, at : at + size].copy() for name, (at, size) in group.items()}
            for group in rig.places.values()
        )

    @property
    def state(self) -> Array:
        """Position to snap of the setpoint (N, 5, n)."""
        return np.stack([self.setpoint[name] for name in STATE_NAMES], axis=1)


class LoopRig(Recorder):
    """A loop with cycles of a clock, with the defaults of a level of safety.

    Attributes:
        now: time of the next cycle, ns.
        period: nominal period of the cycles, s.
    """

    def __init__(
        self,
        robot: str | Robot,
        safety: str = "strict",
        *,
        targets: dict[str, Any] | None = None,
        cycles: int = 4096,
        hosted: bool = False,
        period: float = 1e-3,
        **settings: Any,
    ) -> None:
        """Make a loop of a robot, see :func:`table_of`; targets override the robot's limits.

        A hosted loop runs as in a node, which plans itself, and monitors jumps of its clock.
        """
        self.period = period
        self.table = table_of(robot)
        self.arm = self.table.arm
        super().__init__(ControlLoop(self.table), cycles)
        self.library, self.address = self.loop._library, self.loop.address
        self.n, self.m = self.arm.robot.n, len(self.arm.motor_names)
        self.loop.configure(safety=safety, **settings)
        self.now, self.hosted = START, hosted
        self.limits = None
        if targets is not None:
            rows = ((name, tuple(row) if np.ndim(row) else row) for name, row in targets.items())
            self.limits = _limits_of(self.arm, tuple(rows))
            self.loop.limit(self.limits, period)
        self._refers = False

    # --- Inputs -------------------------------------------------------------------------

    def restart(self, q: ArrayLike | None = None, now: int = NEVER) -> None:
        """Restart at rest at q, or at the measured position of motors or links."""
        if q is None:
            self.library.loop_restart(self.address, now)
        else:
            self.loop.restart(np.asarray(q, dtype=float), now)

    def refer(self, state: ArrayLike, stamp: int | None = None, **more: ArrayLike) -> None:
        """Give the reference (5, n) of the next cycle, with other vectors by name; 0 for no stamp."""
        self.library.loop_rest(self.address, 0)
        given = self.loop.given
        for name, row in zip(STATE_NAMES, np.asarray(state), strict=True):
            given[name][:] = row
        for name, values in more.items():
            given[name][:] = values
        self.library.loop_refer(self.address, self.now if stamp is None else stamp)
        self._refers = True

    def target(
        self, q: ArrayLike, qd: ArrayLike | None = None, times: ArrayLike | None = None, origin: int = 0
    ) -> None:
        """Post a target (n,), or a chunk (K, n) at times, s."""
        rows = [None if x is None else np.ascontiguousarray(x, dtype=float) for x in (times, q, qd)]
        t, positions, velocities = (None if x is None else x.ctypes.data for x in rows)
        count = 0 if rows[0] is None else len(rows[0])
        reason = self.library.loop_post_target(self.address, origin, t, count, positions, velocities, None)
        assert reason is None, reason
        if self.hosted:
            self.library.loop_locate(self.address, self.now, 0)
            self.library.loop_aim(self.address, self.now)

    def trajectory(self, spline: Spline, origin: int = 0, held: ArrayLike | None = None) -> None:
        """Post a trajectory, its time 0 at ``origin``, ns, 0 for now; joints ``held`` (n,) stay."""
        self.loop.send_trajectory(spline, origin, None if held is None else np.asarray(held))

    def empty_trajectory(self) -> None:
        """Post a trajectory without points, which stops."""
        self.library.loop_post_spline(self.address, 0, None, 0, None)

    def measure_motors(self, position: ArrayLike | None, velocity: ArrayLike = 0.0) -> None:
        """Set measured motors (m,) of later cycles, in drive units; None for no measurement."""
        rows = None if position is None else np.stack(np.broadcast_arrays(position, velocity)).astype(float)
        self.loop.measure(motors=rows)

    # --- Cycles -------------------------------------------------------------------------

    def run(self, step: int = MS) -> int:
        """A cycle, which is recorded: 0 if its reference was followed, > 0 why it was refused, < 0 if in doubt."""
        at = self.address
        if self.hosted:
            self._plan()
        cycle = self.library.loop_update if self.hosted else self.library.loop_run
        code = cycle(at, self.now, self.period)
        self.keep(self.now, code, self._refers)
        self._refers = False
        self.now += step
        return int(code)

    def _plan(self) -> None:
        """Plan the posted trajectory, or the queued one at its start, from the present position."""
        if not self.number("playing"):
            self.library.loop_locate(self.address, self.now, 0)
        self.library.loop_plan(self.address, self.now, self.period)

    def stop(self) -> None:
        """Stop the arm."""
        if self.hosted:
            self.library.loop_locate(self.address, self.now, 0)
        self.loop.act("stop")

    def cycles(self, count: int, state: ArrayLike | None = None, **more: ArrayLike) -> None:
        """Cycles with a reference that repeats, or without one."""
        for _ in range(count):
            if state is not None:
                self.refer(state, **more)
            self.run()

    def stream(self, states: Iterable[ArrayLike]) -> list[int]:
        """A cycle with each reference (5, n); what they return."""
        codes = []
        for state in states:
            self.refer(state)
            codes.append(self.run())
        return codes

    def number(self, name: str) -> float:
        return self.loop.number(name)

    @property
    def q(self) -> Array:
        """A copy of the commanded position (n,)."""
        return self.loop.setpoint["q"].copy()


def rest(q: ArrayLike) -> Array:
    """The state (5, n) of an arm at rest."""
    q = np.asarray(q, dtype=float)
    return np.stack([q, *np.zeros((4, len(q)))])


def straight(times: ArrayLike, positions: ArrayLike) -> Spline:
    """A spline that rests at each of its positions (K, n)."""
    positions = np.asarray(positions, dtype=float)
    return Spline(times, np.stack([positions, *np.zeros((4, *positions.shape))]))
