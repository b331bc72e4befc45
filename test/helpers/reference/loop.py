# SPDX-License-Identifier: Apache-2.0
"""The control loop of an arm, cycle by cycle, around :class:`.StreamEvaluator`."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from eom_dynamics import ElasticArm, EomDynamicsError, StateError
from eom_dynamics.arrays import Array
from eom_dynamics.control import settings as law
from eom_dynamics.control.online_trajectory import OnlineTrajectory
from eom_dynamics.control.setpoint_to_command import EvaluatedCommand
from eom_dynamics.control.settings import Status
from eom_dynamics.elastic import BaseMotion, LimitCheck
from eom_dynamics.elastic.drive_programs import DriveCommand
from eom_dynamics.elastic.limits import TOLERANCE
from eom_dynamics.kinematics.motion import predicted
from eom_dynamics.robot import Payload
from eom_dynamics.trajectory import Spline
from reference.checks import Checks, Settings
from reference.gate import Gate
from reference.path_time import PaceKeeper, PaceOptions, PathTime, chain
from reference.payload_blend import falling
from reference.stop import Beside, Company, Flow, Ranges, Stop, can_stop, choose_stop
from reference.stream_evaluator import Ahead, StreamEvaluator
from reference.take_over import Plan, commanded_later, plan_from, take_over


class Options(NamedTuple):
    """Settings of the loop, as there; the period of trajectories and targets in ns, and limits of targets."""

    limits: str = "ignore"
    lead: float = 0.0
    on_loss: str = "none"
    timeout: float = 0.0
    stop_duration: float = law.DEFAULTS["stop_duration"]
    ramp_duration: float = law.DEFAULTS["ramp_duration"]
    checks: Settings = Settings()
    period: int = 1_000_000
    motion: Mapping[str, float] | None = None
    on_contact: str = "ignore"


class Target(NamedTuple):
    """A target, NaN where that of a joint stays, or a chunk (K, n) at times, s, after an origin, ns."""

    positions: Array
    velocities: Array | None = None
    times: Array | None = None
    origin: int = 0


class Resting:
    """At rest at once."""

    duration = 0.0

    def __init__(self, flow: Flow) -> None:
        base = flow.base and BaseMotion(*(x * (np.arange(len(x)) == 0)[:, np.newaxis] for x in flow.base))
        self._flow = Flow(flow.state * np.eye(5)[:, :1], *flow.beside()[:2], base)

    def at(self, s: float) -> Flow:
        return self._flow


class StopOnPath:
    """A stop of a motion that is played, on its path from a time of the clock, ns, which is being sought."""

    def __init__(self, plan: Plan, time: PathTime, now: int, pace: PaceKeeper, options: PaceOptions) -> None:
        self.plan, self.time, self._pace, self._options, self._now = plan, time, pace, options, now
        pace.begin_stop()

    @property
    def duration(self) -> float:
        return np.inf if self._pace.end is None else 1e-9 * max(self._pace.end - self._now, 0)

    def seek(self, s: float, period: float) -> bool:
        """Go on to seek it in a cycle of a period, s; return whether there may be one."""
        return self._pace.stops(self.time, self._now + round(1e9 * s), period, self._options)

    def at(self, s: float, later: float = 0.0) -> Flow:
        return Flow(on_path(self.plan, self.time, self._now + round(1e9 * s), later))


class Braking:
    """A motion to targets that comes to rest, within its limits; ``move`` goes on by a time, ns."""

    def __init__(self, online: OnlineTrajectory, move: Callable[[int], Flow]) -> None:
        online.stop()
        self._online, self._move, self._ns = online, move, 0

    def at(self, s: float) -> Flow:
        step = round(1e9 * s) - self._ns
        self._ns += step
        return self._move(step)

    @property
    def duration(self) -> float:
        return 0.0 if self._online.arrived else np.inf


def on_path(plan: Plan, time: PathTime, now: int, later: float = 0.0) -> Array:
    """State on the path of a plan at a time of the clock, ns, and a lead later, s, at most at its end."""
    s = time.at(now, later)
    if later:
        s[0] = min(s[0], max(time.at(now)[0], plan.end))
    return chain(plan.state(s[0]), s)


class ReferenceLoop:
    """Commands for setpoints and trajectories, and what is commanded without.

    Attributes:
        command: what is commanded; None before the first setpoint.
        efforts: of motors and joints that are sent.
        paced: sum of the steps of all cycles, ns, by which everything passes that no stamps lead.
        status: of the command.
        checks: plausibility checks.
        speed_scaling, paused: pace of motions that are played, and whether they pause.
    """

    speed_scaling, paused = 1.0, False

    def __init__(self, arm: ElasticArm, options: Options) -> None:
        self.arm, self.options = arm, options
        self.evaluator = StreamEvaluator(arm, lead=options.lead)
        self.evaluator.clock = lambda: self.paced
        self.checks = Checks(LimitCheck(arm).rate_limits, options.checks)
        self.command: EvaluatedCommand | None = None
        self.efforts: tuple[Array, Array] = (np.zeros(0), np.zeros(0))
        self.status = Status.FRESH
        # Who leads the arm, and what its commands pass.
        self._leader, self._gate, self.paced = "", Gate(arm, options.limits), 0
        self._timeout = round(options.timeout * 1e9)
        self._now, self._age, self._started, self._fed = 0, 0, False, False
        # Time of the last cycle on the clock, that less the time of the loop, and how long stamps have waited, ns;
        # leads of stamps by parts of a second.
        self._clock = self._ahead = 0
        self._leads: dict[int, int] = {}
        self._early: tuple[Any, int] | None = None
        # Stamp of the command; time of the last setpoint that was followed, and since the one before, ns.
        self._stamp = self._followed = self._interval = 0
        # Whether setpoints are lost, or a trajectory was ended; whether that was asked for.
        self._lost = self._held = self._asked = False
        self._stop: Stop | Resting | StopOnPath | Braking | None = None
        self._s, self._from_stamp = 0.0, 0
        self._played: Plan | None = None
        self._waiting: Plan | None = None
        self._last_played = -(2**63)
        # Path parameter of what is played, who leads its pace, and time of the last command on its path, ns.
        self._path, self._commanded_at = PathTime(0), -(2**63)
        self._pace: PaceKeeper | None = None
        self._step = 0  # since the last cycle, ns
        self._halts = False  # whether what is played pauses until the payload that waits has begun
        # Motion to a target, whether it leads, its last time, and the rest of a period then, ns.
        limits = options.motion
        self._online = None if limits is None else OnlineTrajectory(arm, 1e-9 * options.period, limits)
        self._aims, self._aimed, self._left = False, 0, 0
        # Latest origin of a chunk, ns.
        self._newest = 0
        # Whether references are refused after contact, and positions every 10 ms with the time of the last one, ns.
        self._contact = self._touched = False
        # Whether a stop has begun after the last cycle, of which the next one repeats the command.
        self._begun = False
        self._past: deque[Array] = deque(maxlen=20)
        self._recorded = -(2**63)

    def sense(self, contact: bool) -> None:
        """Take whether there is contact, and react where it begins."""
        begins, self._contact = contact and not self._contact, contact
        reaction = self.options.on_contact
        if begins and reaction != "ignore":
            self._touched = True
            if reaction == "hold" and self._played:
                self.paused = True
            elif reaction == "retract" and self._past and not self._asked:
                self._touched = False
                self._aim(Target(self._past[0].copy()))
                self._touched = True
            elif self.command is not None:
                self._held = self._asked = True
                if not self._stop:
                    self._begin_stop(Flow.of(self.command))
                    self._begun = not isinstance(self._stop, StopOnPath | Braking)
        elif not contact and self._rests():
            self._touched = False

    def resume(self) -> None:
        """End a pause, and follow references again."""
        self.paused = self._touched = False

    def _rests(self) -> bool:
        if self._aims:
            return bool(self._online and self._online.arrived)
        if self._stop:
            return self.status != Status.STOPPING
        return self.command is not None and not self.command.state[1].any()

    def carry(self, payload: Payload, blend_time: float) -> None:
        """Carry a payload from the next setpoint on; EomDynamicsError where it is refused."""
        before, limits = copy(self.evaluator.blend), self.options.limits
        self.evaluator.blend.change(payload, blend_time)
        if self.command is not None and limits in ("refuse", "clip") and self._overloads(self.command):
            self.evaluator.blend = before
            raise StateError("the arm cannot hold it within limits")
        self.evaluator.prepare_payload()
        if self._played and limits == "refuse":
            assert self._pace is not None
            later = max(self._now, self._last_played)
            self._halts = not self._pace.carries(self._path, later, self._pace_options())

    def _overloads(self, command: EvaluatedCommand) -> bool:
        """Whether the resting arm cannot hold the payload that waits, or cannot pass to it, within limits."""
        ranges = Ranges(self.arm)
        flow = Flow(command.state * np.eye(5)[0][:, np.newaxis], (), *Flow.of(command).beside()[1:])
        present, *awaited = (
            ranges.row(flow, x) for x in (self._carried(self._now, 0.0), *self.evaluator.blend.awaited())
        )
        if present is not None:
            ranges.widen(present)
        return any(row is None or ranges.beyond(row) > TOLERANCE for row in awaited)

    def _follow_past(self, now: int) -> None:
        """Keep what was commanded in the cycle before."""
        if self.command is not None and self._started and self._now - self._recorded >= 10_000_000:
            self._past.append(self.command.state[0].copy())
            self._recorded = self._now

    def cycle(
        self,
        now: int,
        setpoint: Any = None,
        stamp: int = 0,
        spline: Spline | None = None,
        begin: int = 0,
        target: Target | None = None,
    ) -> None:
        """A cycle at a time, ns, with a setpoint message, a spline, which stops where it is empty, and a target."""
        self._follow_past(now)
        time = self._time_at(now)
        passed, self._clock = now - self._clock, now
        self._age += min(max(passed, 0), self._timeout // 2)
        paced = min(max(passed, 0), law.LONGEST_RESPONSE_STEP)
        self.paced += paced if passed >= 0 else 1
        self._step = 0 if self._begun else paced
        step = self._step * 1e-9
        self._begun = False
        self._s += step
        if passed < -law.LARGEST_CORRECTION and (self._played or self._waiting):
            self._end_trajectory()
        self._now = now = time
        if setpoint is None and self._early:
            setpoint, stamp = self._early
        self._early = None
        if spline is not None and not hasattr(spline, "t"):
            if self._played or self._aims:
                self._begin_stop(Flow(self._commanded(now), *Flow.of(self.command)[1:]), now)
                self._held = self._asked = True
            self._waiting = None
        elif spline is not None and not self._touched:
            self._take(spline, begin - self._ahead if begin else now)
        elif self._waiting and now >= self._waiting.begin:
            waiting, self._waiting = self._waiting, None
            if waiting.planned:
                self._play(waiting)
            else:
                self._take(waiting.spline, waiting.origin)
        if target is not None and not (self._touched or self.paused):
            self._aim(target)
        if self._played:
            self._play_on(now)
        elif setpoint is not None and not self._touched and self._may_follow() and self._follow(setpoint, stamp):
            self._aims = False
            self._age, self._fed = 0, True
            self._stop, self._lost, self._held, self._asked = None, False, False, False
            self._interval, self._followed = now - self._followed, now
        elif self._aims:
            self._aim_on(now)
        else:
            self._wait(step)
        if self.command is not None:
            cycle = max(1e-9 * paced, 1e-9 * min(self.options.period, law.LONGEST_RESPONSE_STEP))
            self.efforts = self._gate.efforts(self.command, self._leader, self.paced, cycle)

    def _time_at(self, now: int) -> int:
        """Time of the loop at one of the clock, ns: in a motion of its own, each cycle counts 20 ms at most."""
        if not self._started:
            self._now, self._clock, self._ahead, self._started = now, now, 0, True
        aims = self._aims and not (self._online and self._online.arrived)
        moves = bool(self._played or aims or self._stops)
        before = self._ahead
        time = max(now - (before if moves else min(before, 0)), self._now)
        if moves:
            time = min(time, self._now + law.LONGEST_RESPONSE_STEP)
        self._ahead = now - time
        if not moves and before > self._ahead and self._leader != "setpoints" and self._stamp:
            self._stamp += before - self._ahead
            self.evaluator.deflections.skip(before - self._ahead)
        if self._waiting and not self._played and (late := before - self._ahead):
            waits = self._waiting
            self._waiting = waits._replace(origin=waits.origin + late, begin=waits.begin + late, planned=False)
        return time

    @property
    def _stops(self) -> bool:
        """Whether a stop or a ramp is under way."""
        if self._stop is None:
            return False
        ramps = self._lost and self.options.on_loss == "ramp"
        return self._s < max(self._stop.duration, self.options.ramp_duration if ramps else 0.0)

    def _is_early(self, lead: int) -> bool:
        """Whether a stamp leads its arrival by over 20 ms, and by as much more than the others of the last second."""
        part = self._now // 100_000_000
        self._leads = {k: x for k, x in self._leads.items() if k > part - 11}
        greatest = max(self._leads.values(), default=lead)
        if lead - max(greatest, 0) > law.LONGEST_RESPONSE_STEP:
            return True
        self._leads[part] = max(self._leads.get(part, lead), lead)
        return False

    # --- Setpoints ----------------------------------------------------------------------

    def _follow(self, message: Any, stamp: int) -> bool:
        """Answer a setpoint; return whether it was not refused."""
        before = self.status
        checks = self.options.checks.stamps
        if stamp and checks != "ignore" and self._is_early(stamp - self._clock) and checks == "refuse":
            self._early = message, stamp
            return False

        def admit(stamp: int, state: Array) -> None:
            held = self._lost or self._held or self._aims
            if held and not self._resumes(state[0]):
                raise _FarError
            since = self._now - self._followed + max(self._interval, 0)
            if self.checks.judge(stamp, since, state, held=held):
                raise _SuspectError

        policy = self.options.limits
        self.evaluator.blend.hold(False)
        try:
            command = self.evaluator.evaluate(message, stamp=stamp, limit_policy=policy, admit=admit)
            if policy == "refuse" and not can_stop(self.arm, command.state, self.options.stop_duration):
                raise _OverrunError
        except EomDynamicsError as error:
            self.status = before if isinstance(error, _FarError) else Status.HELD
            return False
        self._send(command, stamp, "setpoints")
        self.evaluator.blend.stays = False
        self.checks.answered(stamp, command.state)
        return True

    def _resumes(self, q: Array) -> bool:
        """Whether a setpoint is near enough after a loss, or after the end of a trajectory."""
        if self._lost and self.options.on_loss == "ramp":
            return False
        if self._asked and self._stops:
            return False
        assert self.command is not None
        return bool(np.all(np.abs(q - self.command.state[0]) <= self.options.checks.distance))

    def _send(self, command: EvaluatedCommand, stamp: int, leader: str) -> None:
        self.evaluator.commit()
        if command.violations:
            command = self._gate.within(command, leader)
        self.command, self._stamp, self.status, self._leader = command, stamp, Status.FRESH, leader

    def _send_flow(
        self, flow: Flow, stamp: int, leader: str, *, refusable: bool, ahead: Ahead | None = None, held: bool = False
    ) -> bool:
        """Send a leader's command for a flow, amid which payloads are held or not; return whether it is not refused."""
        limits, order, blend = self.options.limits, self.evaluator.own_order, self.evaluator.blend
        blend.hold(held)
        policy = "warn" if limits == "refuse" and not refusable else limits
        of_payload = stamp if leader == "setpoints" else 0  # others go by the time of the cycles

        def compute() -> EvaluatedCommand:
            payload = self.evaluator.blend.at(of_payload, self.paced)
            options = {"stamp": stamp, "limit_policy": policy, "ahead": ahead, "payload": payload}
            return self.evaluator.command(order, *flow, **options)

        with suppress(EomDynamicsError):
            command = compute()
            if policy != limits and command.violations:
                command = self._yielding(command, compute)
            self._send(command, stamp, leader)
            blend.stays = blend.stays and not refusable
            return True
        self.status = Status.HELD
        return False

    def _yielding(self, command: EvaluatedCommand, compute: Callable[[], EvaluatedCommand]) -> EvaluatedCommand:
        """With the payload as it is, in a stop, or where its change exceeds a limit further than that before it."""
        blend, before, ranges = self.evaluator.blend, copy(self.evaluator.blend), Ranges(self.arm)
        if not before.stay(as_before=True):
            return command
        self.evaluator.blend = before
        without = compute()
        self.evaluator.blend = blend
        changed, unchanged = (ranges.of(np.concatenate((*x.state, *x.efforts, *x.motors))) for x in (command, without))
        ranges.widen(unchanged)
        if blend.held or not without.violations or ranges.beyond(changed) > TOLERANCE:
            blend.stay()
            self._gate.renew()
        return compute()

    # --- Without setpoints --------------------------------------------------------------

    def _wait(self, step: float) -> None:
        if 0 < self._timeout <= self._age and self._fed and not (self._stop or self._lost):
            self._lost = True
            self.status = Status.HELD
            if self.options.on_loss in ("hold", "ramp"):
                assert self.command is not None
                self._begin_stop(Flow.of(self.command))
        if self._stop:
            self._come_to_rest(self._stop, step)
        elif self._lost:
            self.status = Status.HELD
        ended = abs(self._now - self._followed) > law.LONGEST_GAP
        if self.evaluator.blend.blending and self.command and not self._stop and self._rests() and ended:
            status, stamp = self.status, self._stamp and self._stamp + round(step * 1e9)
            self._send_flow(Flow.of(self.command), stamp, self._leader, refusable=False)
            self.status = status
            self.evaluator.blend.go_by_clock()

    def _begin_stop(self, flow: Flow, now: int = 0) -> None:
        """Begin a stop from a flow; without one that motors can realise, the position is held."""
        stays = self._stop_on_path(now or self._commanded_at) if self._played else None
        brakes = self._aims and self._online
        self._played, self._aims = None, False
        if stays:
            self._rest_by(stays, now)
        elif brakes:
            self._move(max(now - self._aimed, 0) if now else 0)
            self._rest_by(Braking(brakes, self._move), now)
        elif self.command is not None:
            self._rest_by_joints(flow)

    def _rest_by_joints(self, flow: Flow) -> None:
        noisy, payload = self._leader == "setpoints", partial(self._carried, self._now)
        stop, excess = choose_stop(self.arm, flow, payload, self.options.stop_duration, noisy=noisy)
        assert self.command is not None
        self._rest_by(stop if np.isfinite(excess) else Resting(Flow.of(self.command)))

    def _carried(self, begin: int, later: float) -> Sequence[Array]:
        """Payload and its rates that are predicted some time, s, after a time, ns; () for none."""
        return self.evaluator.blend.predicted(self.paced, self.paced + begin - self._now + round(1e9 * later))

    def _beside(self) -> Beside:
        """What is commanded beside the motion of joints."""
        return Flow.of(self.command).beside() if self.command else ((), (), None)

    def _begin_company(self) -> None:
        """Have what accompanies motions continue from what there is now."""
        flow, now = Flow(np.zeros((5, self.arm.robot.n)), *self._beside_now()), self._now
        self._company, self._accompanied = Company(flow, self.options.stop_duration), now

    def _beside_now(self) -> Beside:
        if self.command is None:
            return (), (), None
        if self._leader == "setpoints":
            later = partial(commanded_later, age=self._now - self._followed, interval=self._interval)
            _, *rows, base = Flow.of(self.command)
            wrench, stiffness = (tuple(later(np.stack(x))) if x else () for x in rows)
            return wrench, stiffness, BaseMotion(*(later(np.stack(x)) for x in base)) if base else None
        if self._leader == "stop" and isinstance(self._stop, Stop):
            _, *rows = self._stop.at(self._s)
            return rows[0], rows[1], rows[2]
        return self._accompany(self.command.state)[1:]

    def _accompany(self, state: Array) -> Flow:
        """A state with wrench, stiffness and base, which have been coming to rest since the motion began."""
        return Flow(state, *self._company.at(1e-9 * (self._now - self._accompanied)))

    def _rest_by(self, stop: Stop | Resting | StopOnPath | Braking | None, now: int = 0) -> None:
        self._stop, self._s, self._from_stamp, self._step = stop, 0.0, now or self._stamp, 0
        if not isinstance(stop, Resting):
            self._gate.renew()

    def _come_to_rest(self, stop: Stop | Resting | StopOnPath | Braking, step: float) -> None:
        if isinstance(stop, StopOnPath) and not stop.seek(self._s, 1e-9 * self.options.period * (self._step > 0)):
            assert self.command is not None
            step = 1e-9 * min(self._step, law.LONGEST_RESPONSE_STEP)
            self._rest_by_joints(Flow.of(self.command))
            if self._stop is None:
                return
            self._s, stop = step, self._stop
        flow, lead = stop.at(self._s), self.options.lead
        if isinstance(stop, StopOnPath | Braking):
            flow = self._accompany(flow.state)
        stamp = self._from_stamp + round(self._s * 1e9) if self._from_stamp else 0
        ahead = Ahead(lead, stop.at(self._s, lead).state) if isinstance(stop, StopOnPath) else None
        if not self._send_flow(flow, stamp, "stop", refusable=False, ahead=ahead, held=self._s < stop.duration):
            self._s -= step
            return
        assert self.command is not None
        self._aimed = self._now
        self.checks.moved(flow.state)
        ramps, end = self._lost and self.options.on_loss == "ramp", stop.duration
        if ramps:
            end = max(end, self.options.ramp_duration)
            self.command = faded(self.command, *falling(self._s, self.options.ramp_duration))
        self.status = Status.HELD if self._s >= end else Status.RAMPING if ramps else Status.STOPPING

    # --- Trajectories -------------------------------------------------------------------

    def _take(self, spline: Spline, origin: int) -> None:
        """Plan a trajectory; play it, have it wait, or refuse it."""
        now, t = self._now, 1e-9 * (self._now - origin)
        if t > spline.end or (self._lost and self.options.on_loss == "ramp"):
            return
        period, command = 1e-9 * self.options.period, self.command
        payload = partial(self._carried, max(origin, now))
        plan: Plan | None
        if self._played:
            at = max(t, 0.0)
            then, late = (
                chain(self._played.state(s[0]), s)
                for s in (self._path.at(now, at - t + later) for later in (0.0, max(spline.start - at, 0.0)))
            )
            plan = take_over(self.arm, spline, at, then, late, period, payload, self._beside(), self.options.limits)
            plan = plan and plan._replace(origin=origin, begin=max(origin, now))
        elif command is None:
            plan = Plan(spline, origin, max(now, origin + round(1e9 * max(spline.start, 0.0))))
            first, present = (spline.derivatives(x, 0)[0] for x in (spline.start, t))
            if plan.begin <= now and np.any(np.abs(first - present) > law.DEFAULTS["start_tolerance"]):
                return
            plan = plan._replace(planned=plan.begin <= now)
        elif origin > now:
            plan = Plan(spline, origin, origin, planned=False)
        else:
            at = 0.0 if t < period else t
            present = self._commanded(now if at > 0 else origin)
            plan = plan_from(self.arm, spline, at, t, present, period, payload, self._beside(), self.options.limits)
            plan = plan and plan._replace(origin=origin, begin=now)
        if plan is None or (plan.planned and self._overloads_on(plan)):
            return
        if plan.begin > now:
            self._waiting = plan
        else:
            self._play(plan)

    def _overloads_on(self, plan: Plan) -> bool:
        """Whether a motion exceeds limits, which are refused, with the payload at the pace with which it is played."""
        options, pace = self._pace_options(), 0.0 if self.paused else min(self.speed_scaling, 1.0)
        keeper = PaceKeeper(self.arm, plan.state, plan.end, plan.spline)
        return options.loaded and not keeper.carries(PathTime(plan.origin), plan.begin, options, pace)

    def _commanded(self, at: int) -> Array:
        """What is commanded at a time, ns."""
        assert self.command is not None
        if self._played:
            return on_path(self._played, self._path, max(at, self._last_played))
        if self._aims or isinstance(self._stop, Braking):
            return commanded_later(self.command.state, at - self._aimed, law.LONGEST_RESPONSE_STEP)
        if self._stop:
            return self._stop.at(self._s + 1e-9 * (at - self._now)).state
        if self._leader != "setpoints":  # a motion of the loop was left
            return np.stack([self.command.state[0], *np.zeros_like(self.command.state[1:])])
        return commanded_later(self.command.state, at - self._followed, self._interval)

    def _play(self, plan: Plan) -> None:
        if not self._played:
            self._last_played = -(2**63)
        self._aims = False
        self._begin_company()
        self._path, self._commanded_at = PathTime(plan.origin), -(2**63)
        self._pace = PaceKeeper(self.arm, plan.state, plan.end, plan.spline)
        self._played, self._waiting, self._stop = plan, None, None
        self._lost = self._held = self._asked = False
        self.checks.restart()

    def _play_on(self, now: int) -> None:
        plan = self._played
        assert plan is not None
        self._age = 0
        self._halts = self._halts and self.evaluator.blend.waits
        wanted, period = 0.0 if self.paused or self._halts else self.speed_scaling, 1e-9 * self.options.period
        assert self._pace is not None
        later = max(now, self._last_played)
        if wanted == 0.0 and self._commanded_at < 0 and not plan.state(plan.start)[1:].any():
            self._path.stay(plan.start, later)
        if self._pace.keep(self._path, wanted, later, period, self._pace_options()) and self._waiting:
            self._waiting = self._waiting._replace(planned=False)
        if now <= self._last_played:  # no time has passed
            return
        self._last_played = now
        lead = self.options.lead
        ahead = Ahead(lead, on_path(plan, self._path, now, lead))
        flow = self._accompany(on_path(plan, self._path, now))
        changes = self._pace.changes(self._path, now, self._pace_options())
        held = changes or (self._halts and self._path.at(now)[1] > 0)
        if not self._send_flow(flow, now, "trajectory", refusable=True, ahead=ahead, held=held):
            self._end_trajectory()
            self._wait(0.0)
            return
        self._fed, self._commanded_at = True, now
        if self._path.at(now)[0] >= plan.end - 1e-12 and not self._waiting:
            self._played = None
            self._rest_by(Resting(flow))
            self.checks.moved(flow.state)

    def _pace_options(self) -> PaceOptions:
        blend, ahead = self.evaluator.blend, round(1e9 * self.options.lead)
        loaded = self.options.limits == "refuse" and blend.present
        return PaceOptions(self._carried, ahead, self.options.stop_duration, blend.awaited, loaded, self._beside)

    def _stop_on_path(self, now: int) -> StopOnPath | None:
        """The stop on the path, as long as there may be one; None without a path."""
        plan = self._played
        if plan is None or self._commanded_at < 0:
            return None
        assert self._pace is not None
        return StopOnPath(plan, self._path.copy(), now, self._pace, self._pace_options())

    # --- Targets ------------------------------------------------------------------------

    def _aim(self, target: Target) -> None:
        """Aim at a target from what is commanded now on, or refuse it."""
        now, online = self._now, self._online
        begin = target.origin - self._ahead if target.origin else now
        if self.command is None or online is None or (self._lost and self.options.on_loss == "ramp"):
            return
        if target.times is not None and not (begin - now <= 60e9 and begin + 1e9 * target.times[-1] >= now - 0.5e9):
            return
        if 0 < target.origin < self._newest or self._overloaded_at(target):
            return
        latest = now + self._ahead + law.LONGEST_GAP if target.times is None else target.origin
        self._newest = max(self._newest, min(target.origin, latest))
        if not self._aims:
            if isinstance(self._stop, Braking):
                self._stop.at(self._s)
            else:
                online.take_over(self._commanded(now))
                self._left, self._fifth = 0, np.zeros(self.arm.robot.n)
            self._begin_company()
            self._played, self._waiting, self._stop = None, None, None
            self._lost = self._held = self._asked = False
            self.checks.restart()
            self._aims, self._aimed = True, now
        longest = min(self.options.period, law.LONGEST_RESPONSE_STEP) if online.arrived else law.LONGEST_RESPONSE_STEP
        self._aimed = max(self._aimed, now - longest)
        if target.times is not None:
            online.follow(online.time + 1e-9 * (begin - self._aimed + self._left) + target.times, target.positions)
        else:
            joints = zip(self.arm.robot.joint_names, target.positions, strict=True)
            online.target({name: q for name, q in joints if np.isfinite(q)}, target.velocities)

    def _overloaded_at(self, target: Target) -> bool:
        """Whether the arm cannot rest at the end of a target within limits."""
        assert self.command is not None
        if target.velocities is not None and np.any(target.velocities):
            return False
        stays, end, ranges = self.command.state, np.atleast_2d(target.positions)[-1], Ranges(self.arm)
        q = np.where(np.isnan(end), stays[0], end)
        payload = next(iter(self.evaluator.blend.awaited()), self._carried(self._now, 0.0))
        row = ranges.row(Flow(np.stack([q, *np.zeros_like(stays[1:])])), payload)
        return self.options.limits in ("refuse", "clip") and (row is None or ranges.beyond(row) > TOLERANCE)

    def _may_follow(self) -> bool:
        return not self._aims or (self._online is not None and self._online.arrived)

    def _aim_on(self, now: int) -> None:
        assert self.command is not None
        flow = self._accompany(self._move(min(max(now - self._aimed, 0), law.LONGEST_RESPONSE_STEP)).state)
        self._aimed, self._age, self._fed = now, 0, True
        if not self._send_flow(flow, now, "target", refusable=True):
            assert self._online is not None
            self._online.take_over(self.command.state)
            self._left, self._fifth, self._held = 0, np.zeros(self.arm.robot.n), True
            self._begin_stop(Flow.of(self.command))
            self._wait(0.0)

    def _move(self, step: int) -> Flow:
        """Move on to targets, or to rest, by a time, ns."""
        assert self._online is not None
        self._left += step
        periods = max(-(-self._left // self.options.period), 0)
        self._left -= periods * self.options.period
        if periods:
            states = [self._online.state, *self._online.step(periods)]
            self._fifth = (states[-1][4] - states[-2][4]) / (1e-9 * self.options.period)
        rows, limits = np.stack([*self._online.state, self._fifth]), self._online.limits
        most = np.array([limits.velocity, limits.acceleration, limits.jerk])
        most[np.abs(rows[1:4]) > most] = np.inf  # it comes back within them
        state = np.stack([predicted(rows[k:], 1e-9 * self._left) for k in range(5)])
        state[1:4] = np.clip(state[1:4], -most, most)
        return Flow(state)

    def _end_trajectory(self) -> None:
        self._waiting = None
        if self._played and self.command is not None:
            self._held = True
            self._begin_stop(Flow.of(self.command))
        self._played = None


class _FarError(EomDynamicsError):
    """Too far from where the arm is held."""


class _OverrunError(EomDynamicsError):
    """The arm could not stop before a limit of its positions."""


class _SuspectError(EomDynamicsError):
    """Not plausible."""


def faded(command: EvaluatedCommand, w: float, wd: float, wdd: float) -> EvaluatedCommand:
    """The command with efforts times a factor, whose time derivatives are given, by Leibniz' rule."""
    tau, taud, taudd = command.efforts
    motors, sent = command.motors.copy(), command.sent
    motors[-1] *= w
    if sent is not None:
        rate = w * sent.joint_effort_rate + wd * sent.joint_effort
        sent = DriveCommand(sent.position, sent.velocity, w * sent.effort, w * sent.joint_effort, rate)
    efforts = np.stack([w * tau, w * taud + wd * tau, w * taudd + 2 * wd * taud + wdd * tau])
    return command._replace(efforts=efforts, motors=motors, sent=sent)
