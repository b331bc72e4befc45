# SPDX-License-Identifier: Apache-2.0
"""Watchdog: response to lost and returning setpoints, specified in docs/watchdog.md, and the clocks of a stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..elastic import DriveCommand, ElasticArm, LimitCheck
from ..elastic.bounds import TOLERANCE
from ..exceptions import StateError
from ..messages.setpoint_to_command import EvaluatedCommand
from ..states import all_finite
from ..trajectory.rest_to_rest import falling
from ..units import unit
from .arm_stop import ArmStop, Flow, choose_stop

# Steady time without progress of the clock after which it stands still, ns: longer than readings of a simulation's
# clock are apart.
_STANDSTILL = 500_000_000

# Longest time between two readings that counts, ns: after a stall of the process the latest reading may still wait.
_LONGEST_ADVANCE = 100_000_000

# Smallest rate of a clock that runs, in steady time: slower than any useful simulation.
_SLOWEST = 100


class WatchedClock:
    """Time that follows a clock, and the steady clock of the process while that clock stands still.

    Attributes:
        reading: last reading of the clock, ns.
        stands_still: whether the clock stands still, runs at less than a hundredth of its rate, or cannot be read.
    """

    def __init__(self, read: Callable[[], int], steady: Callable[[], int] = time.monotonic_ns) -> None:
        """Watch the clock of ``read``, in ns; negative readings and exceptions are ignored."""
        self._read, self._steady = read, steady
        self.reading = 0
        self.stands_still = False
        self._latest: int | None = None
        self._idle = self._time = 0

    def now(self) -> int:
        """Time since an arbitrary origin, ns; it never goes back."""
        steady, reading = self._steady(), -1
        with suppress(Exception):  # of any clock that is broken
            reading = self._read()
        reading = reading if reading >= 0 else self.reading
        if self._latest is not None:
            passed, advance = min(steady - self._latest, _LONGEST_ADVANCE), max(reading - self.reading, 0)
            self._idle = min(max(self._idle + passed - _SLOWEST * advance, 0), _STANDSTILL)
            self.stands_still = self._idle == _STANDSTILL
            self._time += passed if self.stands_still else advance
        self._latest, self.reading = steady, reading
        return self._time


# Lateness of a reading of /clock while this process does not stall, ns.
_LATENESS = 200_000_000


class ClockWatch:
    """Detects jumps of a clock by comparison with the steady clock.

    A process that stalls, such as under load, sees its clock jump forward, too, but then the steady clock has advanced
    as well: only an advance that steady time does not account for is a jump. This holds for simulated time, too, as the
    reading after a stall is the latest one of ``/clock``. In a simulation faster than real time, readings further apart
    than the limit are a jump, since the commands would be as far apart.

    Steady time is credited once, and for as long after a stall as that took, since readings may be delivered one by one
    after it. Otherwise only little of it is kept, for a late reading: a pause of ``/clock`` must not hide a later jump.
    """

    def __init__(self, limit: int) -> None:
        """Report jumps forward of more than ``limit`` ns."""
        self._limit = limit
        self._clock = self._steady = self._credit = self._most = 0

    def restart(self, clock: int, steady: int) -> None:
        """Restart the observation; arguments as for :meth:`jump`."""
        self._clock, self._steady = clock, steady
        self._credit = self._most = 0

    def jump(self, clock: int, steady: int) -> int:
        """Return by how much the clock has jumped forward since the last observation, ns; 0 within the limit.

        Args:
            clock: time of the clock, ns.
            steady: time of the steady clock, ns.
        """
        passed, advance = steady - self._steady, clock - self._clock
        self._clock, self._steady = clock, steady
        self._most = max(passed, self._most - passed, _LATENESS)
        credit = min(self._credit + passed, self._most)
        self._credit = max(credit - max(advance, 0), 0)
        return advance if advance - credit > self._limit else 0


OBSERVATIONS = 10
"""Observations within a timeout."""


class SetpointAge:
    """Time since the last valid setpoint, on an observed clock.

    An observation adds at most half of the timeout: after a stall of the process, setpoints that wait in its queue are
    taken before the timeout is over. A clock that goes back adds nothing.

    Attributes:
        fed: whether a valid setpoint has arrived since the last observation; a stream only stores it.
    """

    def __init__(self, timeout: float) -> None:
        """Set the timeout, s; 0 for none."""
        # In ns, whose sums are exact.
        self._timeout = round(timeout * 1e9)
        self.fed = False
        self._age = 0
        self._latest: int | None = None

    def observe(self, now: int) -> bool:
        """Return whether the timeout has passed, at a time of the clock, ns."""
        if self.fed or self._latest is None:
            self.fed, self._age = False, 0
        else:
            step = max(now - self._latest, 0)
            self._age += min(step, self._timeout // 2) if self._timeout else step
        self._latest = now
        return 0 < self._timeout <= self._age

    @property
    def age(self) -> float:
        """Time since the observation after the last valid setpoint, s."""
        return self._age * 1e-9


class Fade(NamedTuple):
    """Fade factor of efforts with two time derivatives, 1/s and 1/s²."""

    w: float
    wd: float
    wdd: float

    def of(self, command: EvaluatedCommand) -> EvaluatedCommand:
        """The command with faded efforts and unchanged motor motion, with derivatives by Leibniz' rule.

        Raises:
            StateError: a derivative of the efforts is not finite, since the command's numbers are too large.
        """
        w, wd, wdd = self
        tau, taud, taudd = command.efforts
        efforts, motors = command.efforts.copy(), command.motors.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            efforts[0] = w * tau
            efforts[1] = w * taud + wd * tau
            efforts[2] = w * taudd + 2 * wd * taud + wdd * tau
            motors[-1] *= w
            sent = command.sent
            if sent is not None:
                joints = w * sent.joint_effort, w * sent.joint_effort_rate + wd * sent.joint_effort
                sent = DriveCommand(sent.position, sent.velocity, w * sent.effort, *joints)
        if not all_finite((efforts, *(sent or ()))):
            raise StateError("numbers too large: derivatives of fading efforts would be infinite")
        return command._replace(efforts=efforts, motors=motors, sent=sent)


def fade(s: float, duration: float) -> Fade:
    """Fade factor 1 - 10 u³ + 15 u⁴ - 6 u⁵, u = s/duration, from 1 to 0 and C².

    Args:
        s: time since the start, s.
        duration: s; afterwards the factor is zero.
    """
    return Fade(*falling(s, duration))


LOSS_POLICIES = ("none", "hold", "ramp", "deactivate")
"""What to do when setpoints are lost: report it; bring the arm to rest and hold it; the same while efforts fade to
zero; or deactivate the node."""

LONGEST_RESPONSE_STEP = 0.02
"""Longest time between two commands of a response that counts, s: a stall or a jump of the clock makes no step."""


class Phase(Enum):
    """State of the stream, with its name in diagnostics."""

    WAITING = "waiting"
    STREAMING = "streaming"
    LOST = "lost"
    STOPPING = "stopping"
    HELD = "held"
    RAMPING = "ramping"
    RELEASED = "released"


class Status(Enum):
    """Kind of a command, by its number in a FeedforwardCommand."""

    FRESH = 0
    HELD = 1
    STOPPING = 2
    RAMPING = 3


class Settings(NamedTuple):
    """Parameters of the watchdog.

    Attributes:
        policy: one of LOSS_POLICIES.
        timeout: s; 0 for none.
        stop_duration, ramp_duration: wanted duration of the stop, duration of the ramp, s.
        resume_distance: largest distance of a setpoint from the commanded position after a loss, rad or m.
    """

    policy: str = "none"
    timeout: float = 0.0
    stop_duration: float = 0.3
    ramp_duration: float = 1.0
    resume_distance: float = 0.1


DEFAULTS = Settings()
"""Those of the node and, by a test, of exported control loops."""


class Response(NamedTuple):
    """The next command after a loss.

    Attributes:
        s: time since the loss, s.
        flow: what to command.
        status: its kind.
        fade: factor of its efforts; None for one.
    """

    s: float
    flow: Flow
    status: Status
    fade: Fade | None


class Watchdog:
    """State machine of a stream of setpoints and of the response to their loss.

    Attributes:
        phase: state of the stream.
        settings: parameters.
        age: time since the last valid setpoint.
        last: the last command for a valid setpoint.
        cause: why setpoints were lost; empty while they are not.
        excess: of the stop over limits, relative to half their range, as of :meth:`.LimitCheck.excess`.
    """

    def __init__(self, arm: ElasticArm, settings: Settings) -> None:
        """Wait for the first setpoint of an arm."""
        self._arm, self._limits, self.settings = arm, LimitCheck(arm), settings
        self.age = SetpointAge(settings.timeout)
        self.phase = Phase.WAITING
        self.last: EvaluatedCommand | None = None
        self.cause = ""
        self.excess = 0.0
        self._stop: ArmStop | None = None
        self._s = 0.0
        self._latest: int | None = None
        self._position: Array | None = None

    @property
    def responding(self) -> bool:
        """Whether the watchdog issues the commands, instead of setpoints."""
        return self.phase in _RESPONDING

    def disarm(self) -> None:
        """Expect no setpoints: the stream has ended as intended, or restarts."""
        self.phase, self.last, self.cause, self._stop = Phase.WAITING, None, "", None

    def admit(self, q: Array | None) -> None:
        """Refuse a setpoint (n,) that would be a step after a loss; None for one of other joints.

        Raises:
            StateError: it is refused.
        """
        if self.phase is Phase.STREAMING or self.phase is Phase.WAITING or self.phase is Phase.LOST:
            return
        self.require_efforts()
        if self._position is not None and q is not None:
            with np.errstate(over="ignore"):
                away = np.abs(q - self._position)
            joint = int(np.argmax(away))
            if away[joint] > self.settings.resume_distance:
                held = self._arm.robot.independent_joints[joint]
                raise StateError(
                    f"{held.name} is {away[joint]:.3g} {unit('position', held.type)} from where it is held since "
                    f"setpoints were lost, more than {self.settings.resume_distance:g} (parameter resume_distance)"
                )

    @property
    def released(self) -> bool:
        """Whether efforts fade, or have faded, to zero."""
        return self.phase is Phase.RAMPING or self.phase is Phase.RELEASED

    def require_efforts(self) -> None:
        """Raise StateError if efforts fade, or have faded, to zero."""
        if self.released:
            raise StateError("efforts are ramped down since setpoints were lost: deactivate and activate the node")

    def feed(self, command: EvaluatedCommand) -> None:
        """Record a valid setpoint, which ends a response."""
        self.last = command
        self.age.fed = True
        if self.phase is not Phase.STREAMING:
            self.phase, self.cause, self._stop = Phase.STREAMING, "", None

    def observe(self, now: int) -> str:
        """Return the cause of a loss at a time of the clock, ns; empty for none."""
        late = self.age.observe(now)
        if late and self.phase is Phase.STREAMING:
            return f"no valid setpoint for {self.age.age:.3g} s (setpoint_timeout {self.settings.timeout:g} s)"
        return ""

    def lose(self, cause: str) -> bool:
        """Begin the response to a loss, by the policy; return whether there is a response.

        Args:
            cause: for diagnostics.

        Raises:
            StateError: the motors can realise no stop; the last command is held.
        """
        if self.phase is not Phase.STREAMING or self.last is None:
            return False
        self.cause, self._s, self._latest, self._stop = cause, 0.0, None, None
        self._position, self.excess = self.last.state[0], 0.0
        self.phase = Phase.LOST
        if self.settings.policy in ("hold", "ramp"):
            self.phase = Phase.RAMPING if self.settings.policy == "ramp" else Phase.HELD
            self._stop, self.excess = choose_stop(self._arm, self._limits, self.last, self.settings.stop_duration)
            if self.settings.policy == "hold":
                self.phase = Phase.STOPPING
        return self.responding

    def end(self, last: EvaluatedCommand, cause: str) -> None:
        """Bring the arm to rest after the last command of a stream, whatever the policy.

        A response under way goes on. An arm at rest is held.

        Raises:
            StateError: the motors can realise no stop; the last command is held.
        """
        if self.responding:
            return
        self.settings = self.settings._replace(policy="hold")
        self.feed(last)
        if moves(last):
            self.lose(cause)
        else:
            self.phase, self.cause, self._position = Phase.HELD, cause, last.state[0]

    @property
    def at_rest(self) -> bool:
        """Whether the response has come to its end."""
        return self.phase is Phase.HELD or self.phase is Phase.RELEASED

    @property
    def within_limits(self) -> bool:
        """Whether the stop meets all limits that the last command met."""
        return self.excess <= TOLERANCE

    @property
    def stop_duration(self) -> float:
        """Duration of the present stop, s; 0 without one."""
        return self._stop.duration if self._stop else 0.0

    def respond(self, now: int) -> Response:
        """Next command of the response at a time of the clock, ns, to be followed by :meth:`commit` once it is sent."""
        assert self.last is not None  # after a loss
        if self._latest is not None:  # else the first one, which repeats the last command
            self._s += min(max(now - self._latest, 0) * 1e-9, LONGEST_RESPONSE_STEP)
        self._latest = now
        if self._stop:
            flow = self._stop.at(self._s)
        else:
            last = self.last
            flow = Flow(last.state, last.wrench, last.stiffness, last.base)
        if self.settings.policy == "ramp":
            ramps = self._s < max(self.settings.ramp_duration, self.stop_duration)
            self.phase = Phase.RAMPING if ramps else Phase.RELEASED
            status = Status.RAMPING if ramps else Status.HELD
            return Response(self._s, flow, status, fade(self._s, self.settings.ramp_duration))
        stops = self._stop is not None and self._s < self._stop.duration
        self.phase = Phase.STOPPING if stops else Phase.HELD
        return Response(self._s, flow, Status.STOPPING if stops else Status.HELD, None)

    def commit(self, response: Response) -> None:
        """Measure the distance of returning setpoints from a response, whose command has been sent."""
        self._position = response.flow.state[0]


def moves(command: EvaluatedCommand) -> bool:
    """Whether joints, wrenches, stiffness or base change at a command."""
    rows = [command.state, *(group for group in (command.wrench, command.stiffness) if group), *(command.base or ())]
    return any(np.any(x) for row in rows for x in row[1:])


_RESPONDING = (Phase.STOPPING, Phase.HELD, Phase.RAMPING, Phase.RELEASED)
