# SPDX-License-Identifier: Apache-2.0
"""Path parameter of a motion that is played, and the shortest change of its pace within limits."""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly, PPoly

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.control import settings as law
from eom_dynamics.elastic.limits import TOLERANCE
from eom_dynamics.trajectory import Spline
from reference.stop import Beside, Carried, Flow, Ranges

SHORTEST_CHANGE, SLOWEST = 0.01, 0.01
"""Duration of the shortest change of pace, s, and pace below which the motion is as if at rest."""

# Shares of rise, hold and fall.
_SHAPES = np.array([(0.5, 0, 0.5), (0.25, 0.5, 0.25), (0.2, 0, 0.8), (0.8, 0, 0.2)])
# Steps of wait, rise, hold and fall, and of the edge.
_DIRECTIONS = np.array(
    [
        *((0, -1, 0, -1, 0), (-1, 0, 0, 0, 0), (0, -1, 0, 0, 0), (0, 0, -1, 0, 0), (0, 0, 0, -1, 0)),
        *((0, -1, 1, -1, 0), (0, -1, 0.75, 0, 0), (0, 0, 0.75, -1, 0), (0, 0.75, -1, 0, 0), (0, 0, -1, 0.75, 0)),
        *((0, -1, 0, 0.75, 0), (0, 0.75, 0, -1, 0), (0, -1, 0, -1, -2), (0, -1, 0, -1, 2), (0, -0.5, -0.5, -0.5, -2)),
        *((-1, 0.75, 0, 0, 0), (0.75, -1, 0, -1, 0)),
    ]
)


def chain(path: Array, s: Array) -> Array:
    """State (5, n) of q(s(t)) from that of q(s), and s with four derivatives: Faa di Bruno's formula."""
    q, v, a, j, k = path, *s[1:]
    return np.stack(
        [
            *(q[0], q[1] * v, q[2] * v**2 + q[1] * a),
            *(
                q[3] * v**3 + 3 * q[2] * v * a + q[1] * j,
                q[4] * v**4 + 6 * q[3] * v**2 * a + q[2] * (3 * a**2 + 4 * v * j) + q[1] * k,
            ),
        ]
    )


class Shape(NamedTuple):
    """Durations of a change of pace, s, and the share of rise and fall in which the jerk rises, and falls."""

    wait: float = 0.0
    rise: float = 0.0
    hold: float = 0.0
    fall: float = 0.0
    edge: float = 0.5

    @property
    def total(self) -> float:
        return self.wait + self.rise + self.hold + self.fall


class Change:
    """Path parameter from a state to a pace, which stays after ``duration``; by default the pace 1 from 0."""

    def __init__(self, start: Array | None = None, pace: float = 1.0, shape: Shape | None = None) -> None:
        self.pace, self.shape = pace, shape or Shape()
        self.duration, self._end = self.shape.total, 0.0
        self.first = 1.0 if start is None else start[1]
        self.steady = start is None or not start[2:].any()
        self._start = start
        if start is None:
            return
        wait, rise, hold, fall, edge = self.shape
        fading = BPoly.from_derivatives([0.0, rise], [start[2:], np.zeros(3)])
        most = (pace - start[1] - fading.antiderivative()(rise)) / (hold + 0.5 * (rise + fall))
        lengths = [edge * rise, (1 - 2 * edge) * rise, edge * rise, hold]
        lengths += [edge * fall, (1 - 2 * edge) * fall, edge * fall]
        self.sections = wait + np.concatenate([[0.0], np.cumsum(lengths)])
        up, down = most / (rise - edge * rise), most / (fall - edge * fall)
        jerks = np.array([0, up, up, 0, 0, -down, -down, 0])
        kept = np.append(True, np.diff(self.sections) > 1e-12)
        rows = np.stack([jerks, np.zeros(8)], axis=1)[kept]
        trapezoid = PPoly.from_bernstein_basis(BPoly.from_derivatives(self.sections[kept] - wait, rows))
        # With their derivatives up to the snap.
        self._trapezoid = _stacked([trapezoid.antiderivative(3 - i) for i in range(5)])
        self._fading = _stacked([PPoly.from_bernstein_basis(fading).antiderivative(2 - i) for i in range(5)])
        self._end = self.at(np.nextafter(self.duration, 0.0))[0]

    def at(self, t: float) -> Array:
        """Path parameter with four derivatives."""
        if self._start is None or t >= self.duration:
            return np.array([self._end + self.pace * (t - self.duration), self.pace, 0, 0, 0])
        x, T = t - self.shape.wait, self.shape.rise
        s = np.array([self._start[0] + self._start[1] * t, self._start[1], 0, 0, 0])
        if x >= 0:
            faded = self._fading(min(x, T))
            faded[0] += faded[1] * max(x - T, 0.0)
            faded[2:] *= x < T
            s += self._trapezoid(x) + faded
        return s


def _stacked(curves: Sequence[PPoly]) -> PPoly:
    """Several curves with the same sections as one, which is evaluated once."""
    size = max(len(curve.c) for curve in curves)
    rows = [np.pad(curve.c, ((size - len(curve.c), 0), (0, 0))) for curve in curves]
    return PPoly(np.stack(rows, axis=-1), curves[0].x)


class PathTime:
    """Path parameter over the clock."""

    def __init__(self, origin: int) -> None:
        self.changes = [(origin, Change())]

    def stay(self, place: float, begin: int) -> None:
        """Stay at a place until a change from a time, ns, on."""
        still = Change()
        still.pace, still.first, still._end = 0.0, 0.0, place
        self.changes = [(begin, still)]

    def copy(self) -> "PathTime":
        other = PathTime(0)
        other.changes = [*self.changes]
        return other

    @property
    def last(self) -> tuple[int, Change]:
        return self.changes[-1]

    def at(self, now: int, later: float = 0.0) -> Array:
        """At a time, ns, and some time later, s."""
        times = [(1e-9 * (now - begin) + later, change) for begin, change in self.changes]
        t, change = next((x for x in times[::-1] if x[0] >= 0), times[0])
        return change.at(t)


def peaks(spline: Spline) -> Array:
    """Times at which accelerations and snaps peak, of each joint and sign: the highest one, then others by height."""
    if len(spline.t) == 1:
        return spline.t
    parts = np.arange(law.PEAK_PARTS) / law.PEAK_PARTS
    t = np.append(spline.t[:-1, np.newaxis] + np.diff(spline.t)[:, np.newaxis] * parts, spline.end)
    x = np.concatenate([sign * spline.derivatives(t)[order] for order in (2, 4) for sign in (-1, 1)], axis=1)
    most = np.maximum(x.max(axis=0), 0.0)
    rise, fall = np.diff(x, axis=0, prepend=0.0), -np.diff(x, axis=0, append=0.0)
    least = 1e-4 * np.repeat(most.reshape(4, -1).max(axis=1), spline.n)
    share = np.divide(x, most, out=np.zeros_like(x), where=(rise >= 0) & (fall > 0) & (x > 0) & (most > least))
    highest = len(t) - 1 - x[::-1].argmax(axis=0), np.arange(x.shape[1])
    share[highest] += share[highest] > 0
    best = np.arange(len(t)), share.argmax(axis=1)
    share, rise, fall = share[best], rise[best], fall[best]
    a, b = np.diff(t, prepend=t[0]), np.diff(t, append=t[-1])
    t = t + 0.5 * (b**2 * rise - a**2 * fall) / np.where(share > 0, b * rise + a * fall, 1.0)  # of parabolas
    first = np.lexsort((-t, -share))[: law.PACE_PLACES]
    return t[first[share[first] > 0]]


class Search:
    """The shortest change of pace of a path, a function of s by a spline, within limits, sought over cycles.

    Attributes:
        found: the shortest one so far; None without.
        over: whether the search is.
    """

    def __init__(
        self, arm: ElasticArm, path: Callable[[float], Array], spline: Spline, payload: Carried, options: "PaceOptions"
    ) -> None:
        self._arm, self._path, self._payload, self._options = arm, path, payload, options
        self._density, self._peaks = (len(spline.t) - 1) / max(spline.end - spline.start, 1e-9), peaks(spline)
        self._checks, self._left = 0, 0
        self._worst = [(0, 1.0), (1, 1.0), (3, 1.0), (4, 1.0)]
        self._velocity = np.zeros(len(arm.motor_names))
        self._widened: tuple[float, Ranges, float, Array] | None = None
        self.found: Change | None = None
        self.over, self.meets = False, False
        self._steps: Iterator[None] = iter(())

    def begin(
        self, start: Array, pace: float, shortest: float, growth: float, less: float, end: float, bounds: Array
    ) -> None:
        """Seek a change to a pace: of a duration, s, or others that grow by a factor, of less than another.

        Its acceleration, jerk and snap are within bounds, or of the size from which it begins. Above 1, or with a
        payload above that before, it must meet limits on the path until its end.
        """
        self._bounds = np.maximum(bounds, abs(start[2:])) * (1 + 1e-9)
        self._steps = self._find(start, pace, shortest, growth, less, end)
        self.go_on(1)

    def begin_rest(self, start: Array, pace: float, end: float, margin: float, *, begins: bool = False) -> None:
        """Check whether the path until its end meets limits less a margin at a pace, as :attr:`meets` tells."""
        self._steps = self._keep_on(start[0], end, pace, margin, begins)
        self.go_on(1)

    def go_on(self, count: int) -> None:
        """Check a number of setpoints, and those that belong to the last one."""
        self._left = count
        while self._left > 0 and not self.over:
            before = self._left
            try:
                next(self._steps)
            except (StopIteration, _OverError):
                self.over = True
            self._left = min(self._left, before - 1)

    def _find(
        self, start: Array, pace: float, shortest: float, growth: float, less: float, end: float
    ) -> Iterator[None]:
        if pace > 1 or (pace > start[1] and self._options.loaded):
            yield from self._keep_on(start[0], end, pace, law.PACE_MARGIN * (pace > 1))
            if not self.meets:
                return
        self._checks = 0
        steady = not start[2:].any()

        def attempt(shape: Shape) -> Generator[None, None, bool]:
            nonlocal less
            if not shortest <= shape.total < less or min(shape.rise, shape.fall) < 1e-6:
                return False
            change = Change(start, pace, shape)
            if not (yield from self._keeps(change)):
                return False
            self.found, less = change, shape.total
            return True

        for k, shares in product(range(law.PACE_DURATIONS), _SHAPES):
            if (yield from attempt(Shape(0.0, *(shares * (shortest * growth**k))))):
                break
        step = 0.25
        while self.found is not None and step > 0.02:
            improved = False
            for d in _DIRECTIONS:
                shape = self.found.shape
                size = step * (shape.total - shape.wait)
                wait, rise, hold, fall = np.array(shape[:4]) + size * d[:4]
                edge = np.clip(shape.edge * (1 + d[4] * (0.25 if d[4] < 0 else 0.5)), 0.05, 0.5)
                shape = Shape(max(wait, 0.0) if steady else 0.0, rise, max(hold, 0.0), fall, edge)
                if shape.total < less * (1 - law.PACE_GAIN):
                    improved = (yield from attempt(shape)) or improved
            step = step if improved else step / 2

    def _keep_on(self, s: float, end: float, pace: float, margin: float, begins: bool = False) -> Iterator[None]:
        ranges, self.meets = Ranges(self._arm), True
        first = self._flow(np.array([s, pace, 0, 0, 0]))
        if begins and (row := ranges.row(first, self._payload(0.0))) is not None:
            ranges.widen(row)
        places = (*np.linspace(s, end, law.PACE_PLACES + 1), *np.clip(self._peaks, s, end))
        for x in places if s < end else [None]:
            yield
            if x is None:
                return
            at, t = np.array([x, pace, 0, 0, 0]), (x - s) / pace
            # Payloads wait for stops, whose margin is negative.
            for payload in (self._payload(t), *(self._options.awaited(t) if margin >= 0 else ())):
                if self._excess(ranges, at, payload, margin) > TOLERANCE:
                    self.meets = False
                    return

    def _flow(self, s: Array) -> Flow:
        return Flow(chain(self._path(s[0]), s), *self._options.beside())

    def _excess(self, ranges: Ranges, s: Array, payload: Sequence[Array], margin: float) -> float:
        row = ranges.row(self._flow(s), payload)
        m = len(self._arm.motor_names)
        self._velocity = np.zeros(m) if row is None else row[-4 * m : -3 * m]
        return np.inf if row is None else ranges.beyond(row, margin, -1.0)

    def _count(self, setpoints: int) -> None:
        self._checks += setpoints
        self._left -= setpoints

    def _widen(self, change: Change) -> bool:
        """Widen ranges by the start of a change; return whether that is finite."""
        t, ranges = change.sections[0], Ranges(self._arm)
        s = change.at(t)
        row = ranges.row(self._flow(s), self._payload(t))
        self._count(1)
        if row is not None:
            ranges.widen(row)
            self._widened = change.shape.wait, ranges, self._excess(ranges, s, self._payload(t), 0.0), self._velocity
        return row is not None

    def _keeps(self, change: Change) -> Generator[None, None, bool]:
        times, steady = change.sections, change.steady
        yield
        if self._checks >= law.PACE_CHECKS:
            raise _OverError
        for k, (t, width) in enumerate(zip(times[:-1], np.diff(times), strict=True)):
            samples = 2 if steady or k > 2 else 16
            if any(np.any(abs(change.at(t + width * i / samples)[2:]) > self._bounds) for i in range(1, samples + 1)):
                return False
        if self._widened is None or self._widened[0] != change.shape.wait:
            self._widened = None
            yield
            if self._checks >= law.PACE_CHECKS:
                raise _OverError
            if not self._widen(change):
                return False
        assert self._widened is not None
        _, ranges, first, velocity = self._widened
        # Times, excesses and motor velocities of instants.
        seen: list[tuple[float, float, Array]] = []

        def excess(t: float, margin: float) -> float:
            self._count(1)
            return self._excess(ranges, change.at(t), self._payload(t), margin)

        def is_close(e: float, v: Array) -> bool:
            *before, (_, e1, v1) = seen
            change = abs(e - e1) + (abs(e1 - before[-1][1]) if before else 0.0)
            steps = max(e, e1) > -law.PACE_STEP and bool(np.any(np.minimum(abs(v1), abs(v)) < abs(v - v1)))
            return max(e, e1) > -max(law.PACE_NEAR, 0.5 * change) or steps

        def meets(t: float, *, halves: bool) -> bool:
            if not -1e-9 <= change.at(t)[1] <= max(law.FASTEST_PACE, change.first) + 1e-9:
                return False
            margin = law.PACE_MARGIN * min((t - times[0]) / (times[1] - times[0]), 1.0) ** 2
            e, v = excess(t, margin), self._velocity
            if e > TOLERANCE:
                return False
            if halves and seen and is_close(e, v) and not meets(0.5 * (seen[-1][0] + t), halves=False):
                return False
            peak = e
            if len(seen) > 1 and seen[-2][1] < seen[-1][1] > e:
                (t0, e0, _), (t1, e1, _) = seen[-2:]
                a, b, c = np.polyfit(np.array([t0, t1, t]) - t1, [e0, e1, e], 2)
                peak = c - b * b / (4 * a) + law.PACE_CURVED * (2 * e1 - e0 - e)
            if seen and max(e, seen[-1][1]) > -law.PACE_STEP:
                t1, _, v1 = seen[-1]
                for i in np.flatnonzero(v1 * v < 0):
                    at = t1 + (t - t1) * (v1[i] / (v1[i] - v[i]) + np.array(law.PACE_BESIDE))
                    peak = max(peak, *(excess(u, margin) for u in np.clip(at, times[0], times[-1])))
            seen.append((t, e, v))
            return bool(peak <= TOLERANCE)

        span = times[-1] - times[0]
        samples = np.clip(2 * self._density * span, law.PACE_SAMPLES, law.PACE_MOST_SAMPLES)
        sections = np.arange(len(times) - 1)
        counts = np.where(steady | (sections > 2), 2.8, 4.8) + samples / span * np.where(sections > 0, 1, 2) * np.diff(
            times
        )
        filled = [i for i in sections if times[i + 1] > times[i]]
        places = [np.arange(1, int(count) + 1) / int(count) for count in counts]
        instants = [(0, part * places[0][0]) for part in (0.125, 0.25, 0.5)]
        instants += [(i, share) for i in filled for share in places[i]]
        count = len(self._worst)
        for k, (section, share) in enumerate([*self._worst, *instants]):
            yield
            if self._checks >= law.PACE_CHECKS:
                raise _OverError
            if k <= count:
                seen = [] if k < count else [(times[0], first, velocity)]
            if not meets(times[section] + share * (times[section + 1] - times[section]), halves=True):
                del self._worst[min(k, count - 1)]
                self._worst.insert(0, (section, share))
                return False
        return True


class PaceOptions(NamedTuple):
    """Payload some time, s, after a time, ns; by how much commands are ahead, ns; shortest duration of a stop, s.

    And payloads to come some time from now on, s, whether there is one where limits are refused, and what is commanded
    beside the motion of joints.
    """

    payload: Callable[[int, float], Sequence[Array]]
    ahead: int
    stop_duration: float
    awaited: Callable[[float], Sequence[Sequence[Array]]]
    loaded: bool
    beside: Callable[[], Beside]


class PaceKeeper:
    """Leads the pace of a path, a function of s until an end, by a spline, to the one that is wanted.

    Attributes:
        limited: whether limits do not allow that pace yet.
        end: of a stop, ns; None as long as it is not known.
    """

    def __init__(self, arm: ElasticArm, path: Callable[[float], Array], end: float, spline: Spline) -> None:
        self._arm, self._path, self._end, self._spline = arm, path, end, spline
        self._at_rest = bool(np.abs(path(end)[1:3]).max() <= 1e-6)
        self._before, self._retry, self._ends = 1.0, 0, False
        self._pace, self._parts, self._begin, self._lead = 1.0, 0, 0, 0
        self._want(1.0)

    def keep(self, time: PathTime, wanted: float, now: int, period: float, options: PaceOptions) -> bool:
        """Go on in a cycle of a period, s; return whether there is another change."""
        pace = time.last[1].pace
        seeks = self._on and pace != self._pace
        if wanted != self._wanted and (not seeks or not wanted or wanted <= pace < self._pace):
            self._want(wanted)
        if not self._on:
            self._before = pace
            if pace == self._wanted or (self.limited and now < self._retry):
                return False
            self._parts = 0
            self._seek(time, self._wanted, now, options)
        outcome = self._go_on(time, now, period, options)
        if outcome == "change":
            self.limited, self._retry, self._growth = self._pace != self._wanted, now, law.PACE_GROWTH
            self._on = not self.limited
        elif outcome == "nothing" and time.last[1].pace != self._pace:
            self._retry = now + law.PACE_RETRY
            if self._parts == 3:
                self.limited = True
                self._growth = self._growth * law.PACE_PATIENCE if self._growth < 2 else law.PACE_GROWTH
            else:
                self._parts += 1
                part = (1 - 0.3 * self._parts) * (self._wanted - self._before)
                self._seek(time, self._before + part, now, options)
        return outcome == "change"

    def changes(self, time: PathTime, now: int, options: PaceOptions) -> bool:
        """Whether a change is sought, or under way at a time, ns."""
        since, last = time.last
        return self._on or 1e-9 * (now + options.ahead - since) < last.duration

    def carries(self, time: PathTime, now: int, options: PaceOptions, begins: float | None = None) -> bool:
        """Whether the rest of the path meets limits with a payload that waits, at its pace or that of its begin."""
        pace = max(time.last[1].pace, self._pace if self._on else 0.0) if begins is None else begins
        search = Search(self._arm, self._path, self._spline, partial(options.payload, now), options)
        if pace:
            search.begin_rest(time.at(now), pace, self._end, 0.0, begins=begins is not None)
            search.go_on(2 * law.PACE_PLACES + 1)
        return not pace or search.meets

    def begin_stop(self) -> None:
        """Begin to seek the shortest stop."""
        self._want(0.0)

    def stops(self, time: PathTime, now: int, period: float, options: PaceOptions) -> bool:
        """Go on for a stop; return whether there may be one, be it the end of the motion, if that is at rest."""
        if self._on and self._ends:
            self._search.go_on(self._checks(period))
            if not self._search.over:
                return True
            self._on, self._ends, self._rests = False, False, self._search.meets
            if not self._rests:
                return False
        elif self.keep(time, 0.0, now, period, options) and time.last[1].pace and not self._rests:
            return True  # the rest of the change is to come
        if self._parts > 0 and not (self._hurries or self._at_rest):
            self._hurries, self._parts = True, 0
            self._seek(time, 0.0, now, options)
        since, last = time.last
        if not last.pace or self._rests:
            rest = (self._end - time.at(since, last.duration)[0]) / last.pace if last.pace else 0.0
            self.end = since + round(1e9 * (last.duration + max(rest, 0.0)))
            return True
        if self._on or not self.limited:
            return True
        if not self._at_rest:
            return False
        self._on = self._ends = True
        self._search = Search(self._arm, self._path, self._spline, partial(options.payload, now), options)
        self._search.begin_rest(time.at(now + options.ahead), last.pace, self._end, -law.PACE_MARGIN)
        return True

    def _want(self, pace: float) -> None:
        self._wanted, self._growth, self.end = pace, law.PACE_GROWTH, None
        self.limited = self._on = self._rests = self._hurries = False

    def _seek(self, time: PathTime, pace: float, now: int, options: PaceOptions, lead: int = law.PACE_LEAD) -> None:
        """Begin, for a change some time from now on, ns."""
        since, last = time.last
        self._on, self._pace, self._lead = True, pace, lead
        self._begin = max(now + options.ahead + lead, since)
        start = time.at(self._begin)
        if last.pace == pace:
            less = (1 - law.PACE_GAIN) * (1e-9 * (since - self._begin) + last.duration)
        else:
            less = (self._end - start[0]) / max(start[1], 0.5 * (start[1] + pace), SLOWEST)
        payload = partial(options.payload, self._begin - options.ahead)
        self._search = Search(self._arm, self._path, self._spline, payload, options)
        T = SHORTEST_CHANGE if self._hurries else options.stop_duration
        bounds = np.array([2 / T, 8 / T**2, 48 / T**3])
        size = max(abs(pace - start[1]), (abs(start[2]) / bounds[0]) ** 1.5, (abs(start[3]) / bounds[1]) ** 3)
        shortest = max(T * max(size, np.cbrt(size)), SHORTEST_CHANGE) if not self._hurries else SHORTEST_CHANGE
        growth = self._growth ** (2 if self._hurries else 1)
        self._search.begin(start, pace, shortest, growth, less, self._end, bounds)

    def _go_on(self, time: PathTime, now: int, period: float, options: PaceOptions) -> str:
        """Go on in a cycle: ``more`` is to come, ``change`` is in the time, or ``nothing``."""
        search = self._search
        search.go_on(self._checks(period))
        if search.over and not search.found:
            self._on = False
            return "nothing"
        spare = self._begin - (now + options.ahead)
        if not search.over and 1e-9 * spare > 1.5 * period:
            return "more"
        if search.found and spare >= 0:
            time.changes.append((self._begin, search.found))
            self._seek(time, self._pace, now, options)
            return "change"
        self._seek(time, self._pace, now, options, 2 * self._lead)
        return "more"

    def _checks(self, period: float) -> int:
        """Setpoints that are checked in a cycle of a period, s."""
        return min(ceil(8e3 * law.PACE_RATE * period / max(self._arm.robot.n, 8)), law.PACE_CHECKS)


class _OverError(Exception):
    """Enough has been checked."""
