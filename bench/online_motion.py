# SPDX-License-Identifier: Apache-2.0
"""Streams of targets on elastic arms in MuJoCo: OnlineTrajectory, Ruckig and the segments of JTC."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from harness import CONSOLE, Section, Settings, picture, rms
from mujoco_arms import MujocoArm, held
from paced import START, played
from paced import STEP as CYCLE
from plants import angles_of, tip
from scipy.interpolate import BPoly

from eom_dynamics import ElasticArm, Kinematics, OnlineTrajectory, inverse_kinematics, lie, load_robot
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import smoothing_for
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.trajectory import Spline, minimum_time, rest_to_rest

PERIOD, STEP, REST = 1e-3, 2.5e-4, 1000
GIVEN = {"velocity": 2.0, "acceleration": 10.0}

Motion = Callable[[Array], tuple[Array, Array]]
"""From times to positions and velocities (N, n)."""


class Stream(NamedTuple):
    """Targets by the cycle of their arrival, with or without velocities and accelerations, and the motion behind."""

    events: Mapping[int, tuple[Array, Array | None] | tuple[Array, Array, Array]]
    cycles: int
    motion: Callable[[Array], Array] | None

    @classmethod
    def of(cls, events: Mapping[int, Any], cycles: int, motion: Motion | None = None) -> "Stream":
        """Targets that begin after a rest, and last a number of cycles before a rest of twice its time."""
        shifted = {REST + int(k): event for k, event in events.items()}
        return cls(shifted, REST + cycles + 2 * REST, motion and (lambda t: motion(t)[0]))

    def from_first(self) -> "Stream":
        """The stream that starts at rest at the first target."""
        return self._replace(events={0: (self.events[REST][0], None)} | self.events)


def sines(n: int, draw: np.random.Generator) -> Motion:
    """Sums of sines up to 0.8 Hz, from rest at zero."""
    w = 2 * np.pi * np.array([0.2, 0.5, 0.8])[:, np.newaxis]
    size = np.array([0.3, 0.08, 0.03])[:, np.newaxis] * draw.choice([-1, 1], (3, n))

    def motion(t: Array) -> tuple[Array, Array]:
        t = np.maximum(t, 0.0)[..., np.newaxis, np.newaxis]
        return (size * (1 - np.cos(w * t))).sum(axis=-2), (size * w * np.sin(w * t)).sum(axis=-2)

    return motion


def streams(n: int, seconds: float) -> dict[str, Stream]:
    """Streams of a number of joints."""
    draw, cycles = np.random.default_rng(n), round(1e3 * seconds)
    steps = {1500 * k: (draw.uniform(-0.35, 0.35, n), None) for k in range(round(seconds / 1.5))}
    found = {"steps, 0.7 Hz": Stream.of(steps, cycles)}
    for name, rate, noise, jitter, velocities in (
        ("policy, 10 Hz, jitter 30 %", 10, 0.0, 0.3, False),
        ("teleoperation, 50 Hz, noise 1 mrad", 50, 1e-3, 0.1, False),
        ("Servo, 100 Hz, with velocities", 100, 0.0, 0.0, True),
        ("500 Hz", 500, 0.0, 0.0, False),
    ):
        motion = sines(n, draw)
        times = np.arange(0, seconds, 1 / rate)
        arrive = np.round(1e3 * (times + jitter / rate * draw.uniform(0, 1, len(times))))
        position, velocity = motion(times)
        position += noise * draw.normal(size=position.shape)
        velocity[-1] = 0
        rows = zip(position, velocity if velocities else [None] * len(times), strict=True)
        found[name] = Stream.of(dict(zip(arrive, rows, strict=True)), cycles, motion)
    return found


def ours(arm: ElasticArm, stream: Stream) -> Array:
    """States (N, 5, n) of an OnlineTrajectory."""
    online = OnlineTrajectory(arm, PERIOD, GIVEN)
    states = np.empty((stream.cycles, 5, arm.robot.n))
    for k in range(stream.cycles):
        if k in stream.events:
            online.target(*stream.events[k])
        states[k] = online.step()
    return states


def ruckig(arm: ElasticArm, stream: Stream) -> Array:
    """States of Ruckig; the snap, which has impulses, is zero."""
    from ruckig import InputParameter, OutputParameter, Ruckig, Synchronization

    n, limits = arm.robot.n, OnlineTrajectory(arm, PERIOD, GIVEN).limits
    otg, given, out = Ruckig(n, PERIOD), InputParameter(n), OutputParameter(n)
    given.max_velocity, given.max_acceleration = list(limits.velocity), list(limits.acceleration)
    given.max_jerk = list(limits.jerk)
    if stream.motion is not None:
        given.synchronization = Synchronization.No
    states = np.zeros((stream.cycles, 5, n))
    for k in range(stream.cycles):
        if k in stream.events:
            position, velocity = stream.events[k][:2]
            given.target_position = list(position)
            given.target_velocity = list(np.zeros(n) if velocity is None else velocity)
        otg.update(given, out)
        states[k, :4] = out.new_position, out.new_velocity, out.new_acceleration, out.new_jerk
        out.pass_to_input(given)
    return states


def segments(arm: ElasticArm, stream: Stream, order: int = 0) -> Array:
    """States of the segments of JTC, from the last state to each target at the time of the next target.

    Their order is 3 for steps, else the number of values of a target, unless ``order`` is not 0.
    """
    states = np.zeros((stream.cycles, 5, arm.robot.n))
    now = states[0, :3]
    for begin, end in pairwise([*sorted(stream.events), stream.cycles]):
        position, velocity = stream.events[begin][:2]
        order = order or (3 if stream.motion is None else 1 if velocity is None else 2)
        T = PERIOD * min(end - begin, 700)
        goal = np.stack([position, np.zeros_like(position) if velocity is None else velocity, np.zeros_like(position)])
        path = BPoly.from_derivatives([0, T], [now[:order], goal[:order]])
        t = PERIOD * np.arange(1, end - begin + 1)
        inside = (t < T - 1e-9)[:, np.newaxis]
        for k in range(4):
            value = path(np.minimum(t, T), k) if k < 2 * order else np.zeros((len(t), arm.robot.n))
            states[begin:end, k] = np.where(inside | (k < order), value, 0.0)
        now = states[end - 1, :3]
    return states


Sent = tuple[Array, Array, Array]


def flat(arm: ElasticArm, states: Array) -> Sent:
    """Motor efforts, positions and velocities by flatness, for the middle of the period."""
    y = arm.feedforward(*np.moveaxis(states, 1, 0), lead=PERIOD / 2)
    return y.motor_effort, y.motor_position, y.motor_velocity


def rigid(arm: ElasticArm, states: Array, *, springs: bool = False) -> Sent:
    """Motor efforts, positions and velocities of a rigid arm, on request with the deflection of the springs."""
    h = PERIOD / 2
    q, qd, qdd, qddd, _ = np.moveaxis(states, 1, 0)
    q, qd, qdd = q + h * (qd + h / 2 * (qdd + h / 3 * qddd)), qd + h * (qdd + h / 2 * qddd), qdd + h * qddd
    tau = arm.dynamics.effort(q, qd, qdd)
    return tau + arm.rotor_inertia * qdd, q + springs * tau / arm.stiffness, qd


deflected = partial(rigid, springs=True)

WAYS: Mapping[str, tuple[Callable[[ElasticArm, Stream], Array], Callable[[ElasticArm, Array], Sent]]] = {
    "OnlineTrajectory": (ours, flat),
    "Ruckig, rigid": (ruckig, rigid),
    "Ruckig, τ/K": (ruckig, deflected),
    "JTC": (segments, rigid),
}
GENERATORS = (ours, ruckig)


class Result(NamedTuple):
    """Errors and vibrations by the stiffness, rad; delay, s; and violations of limits."""

    error: list[float]
    vibration: list[float]
    delay: float
    violations: int


def followed(name: str, commands: Sent, start: Array, stiffness: float) -> Array:
    """Positions of the links (N, n) at the times of the commands, which are held for a period."""
    plant, rest = MujocoArm(name, step=STEP, stiffness=stiffness), rest_to_rest(start, start, duration=1.0)
    _, q, _ = plant.run(held(PERIOD, *commands), rest, duration=PERIOD * len(commands[0]), period=PERIOD)
    every = round(PERIOD / STEP)
    return np.vstack([start, q[every - 1 :: every]])[:-1]  # the state of a cycle is held from its time on


def result(name: str, arm: ElasticArm, stream: Stream, way: str) -> Result:
    """Follow a stream with the springs of the file, and with stiffer springs."""
    generate, command = WAYS[way]
    states = generate(arm, stream)
    sent = command(arm, states)
    moving = np.flatnonzero(np.abs(states[:, 1]).max(axis=1) > 1e-6)[-1] + 1
    links = [followed(name, sent, np.zeros(arm.robot.n), stiffness) for stiffness in (1.0, 1.1)]
    errors = [rms((each - states[:, 0])[REST - 100 :]) for each in links]
    vibrations = [rms(after - after.mean(axis=0)) for after in (each[moving : moving + 500] for each in links)]
    limits = OnlineTrajectory(arm, PERIOD, GIVEN).limits
    most = np.array([limits.velocity, limits.acceleration, limits.jerk]) * (1 + 1e-6)
    over = np.any(np.abs(states[:, 1:4]) > most, axis=(1, 2))
    return Result(errors, vibrations, delay_of(stream, states), int(over.sum()))


def delay_of(stream: Stream, states: Array) -> float:
    """Delay of positions behind the motion of a stream, s; NaN without one."""
    if stream.motion is None:
        return float("nan")
    t = PERIOD * np.arange(stream.cycles - 3 * REST)
    delays = PERIOD * np.arange(600)
    motion = states[REST : len(states) - 2 * REST, 0]
    return float(delays[np.argmin([np.mean((stream.motion(t - x) - motion) ** 2) for x in delays])])


def step_times(arm: ElasticArm, stream: Stream) -> list[float]:
    """Mean time of steps of OnlineTrajectory and Ruckig, s."""
    found = []
    for generate in GENERATORS:
        states, times = generate(arm, stream), []
        for begin, end in pairwise([*sorted(stream.events), stream.cycles]):
            away = np.abs(states[begin:end, 0] - stream.events[begin][0]).max(axis=1) > 1e-6
            times.append(PERIOD * (np.flatnonzero(away)[-1] + 2))
        found.append(float(np.mean(times)))
    return found


def sum_of_sines(n: int, *waves: tuple[float, float]) -> Motion:
    """Sums of sines of frequencies, Hz, and amplitudes, rad, at random phases."""
    w, size = np.array(waves).T[:, :, np.newaxis]
    phase = np.random.default_rng(n).uniform(0, 2 * np.pi, (len(waves), n))

    def motion(t: Array) -> tuple[Array, Array]:
        angle = 2 * np.pi * w * np.asarray(t)[..., np.newaxis, np.newaxis] + phase
        return (size * np.sin(angle)).sum(axis=-2), (2 * np.pi * w * size * np.cos(angle)).sum(axis=-2)

    return motion


def with_rates(motion: Motion, seconds: float, *, accelerations: bool) -> Stream:
    """Positions and velocities of a motion at 100 Hz, with accelerations or without."""
    times, h = np.arange(0, seconds, 0.01), 1e-5
    second = (motion(times + h)[1] - motion(times - h)[1]) / (2 * h)
    rows = zip(*motion(times), second, strict=True)
    events = {10 * k: row if accelerations else row[:2] for k, row in enumerate(rows)}
    return Stream.of(events, 10 * len(times), motion)


def sampled(motion: Motion, at: Array, arrive: Array, step: float = 0.0) -> Stream:
    """Positions of a motion at times, s, that arrive in cycles, of an encoder with resolution ``step``, rad."""
    values = motion(at)[0]
    values = np.round(values / step) * step if step else values
    events = {k: (q, None) for k, q in zip(arrive, values, strict=True)}
    return Stream.of(events, int(arrive[-1]), motion)


def generated(section: Section, arm: ElasticArm, seconds: float) -> None:
    """Times of steps, and delays of streams and errors at these delays, of both generators, without an arm."""
    n, limits = arm.robot.n, OnlineTrajectory(arm, PERIOD, GIVEN).limits
    table = section.table("Generators", "", "OnlineTrajectory", "Ruckig")
    averages = 1e3 * float(np.max(2 * limits.jerk / limits.snap + limits.smoothing)) + 2
    for size in (1e-3, 3e-3, 1e-2, 3e-2, 0.1):
        steps = Stream({REST: (np.full(n, size), None)}, REST + 1500, None)
        mine, theirs = (1e3 * (x - 0.001) for x in step_times(arm, steps))
        table.add(f"step of {1e3 * size:.0f} mrad, ms to 1 µrad", f"{mine:.0f}", f"{theirs:.0f}")
        promise = f"a step of {1e3 * size:.0f} mrad in Ruckig's time and both averages"
        section.promise(promise, f"{mine:.0f} ms", mine <= theirs + averages)
    slow, hand = sum_of_sines(n, (0.2, 0.3), (0.5, 0.08), (0.8, 0.03)), sum_of_sines(n, (0.4, 0.2), (8.0, 2e-3))
    dense, every = np.arange(0, seconds, 2e-3), np.arange(round(seconds * 500))
    rare = np.arange(0, seconds, 1 / 60)
    for label, stream, most in (
        ("500 Hz, encoder of 12 bits", sampled(slow, dense, 2 * every, 2 * np.pi / 4096), 25),
        ("20 Hz, repeated at 500 Hz", sampled(slow, dense // 0.05 * 0.05, 2 * every), 25),
        ("hand with a tremor of 8 Hz, 60 Hz", sampled(hand, rare, np.round(1e3 * rare)), 45),
    ):
        t = PERIOD * np.arange(stream.cycles - 3 * REST)[2 * REST :]
        cells = []
        for generate in GENERATORS:
            states = generate(arm, stream.from_first())
            delay = delay_of(stream, states)
            error = rms(stream.motion(t - delay) - states[3 * REST : 3 * REST + len(t), 0])
            cells.append((1e3 * delay, 1e3 * error))
        table.add(f"{label}: delay, ms; error at it, mrad", *(f"{d:.0f}; {e:.1f}" for d, e in cells))
        late = cells[0][0] - cells[1][0]
        section.promise(f"{label}: at most {most} ms later than Ruckig", f"{late:.0f} ms", late <= most)
    for label, more in (("velocities", False), ("velocities and accelerations", True)):
        stream = with_rates(sum_of_sines(n, (0.3, 0.3), (0.8, 0.1)), seconds, accelerations=more)
        exact = stream.motion(PERIOD * np.arange(stream.cycles - 3 * REST))
        found = [generate(arm, stream.from_first())[REST - 1 :, 0][: len(exact)] for generate in GENERATORS]
        errors = (1e3 * rms((exact - q)[2 * REST :]) for q in found)
        table.add(f"two sines at 100 Hz with {label}: error without delay, mrad", *(f"{x:.2g}" for x in errors))
    noise = np.random.default_rng(1).normal(scale=1e-3, size=(round(seconds * 500), n))
    stream = Stream({2 * k: (q, None) for k, q in enumerate(noise)}, 2 * len(noise), lambda t: t)
    found = [generate(arm, stream)[REST:] for generate in GENERATORS]
    cells = [(1e3 * rms(states[:, 0]), rms(states[:, 2])) for states in found]
    table.add("at rest, noise of 1 mrad at 500 Hz: mrad; rad/s²", *(f"{q:.2f}; {a:.2f}" for q, a in cells))
    (q, a), _ = cells
    section.promise("noise at rest: 0.15 mrad and 0.1 rad/s²", f"{q:.2f} mrad, {a:.2f} rad/s²", q <= 0.15 and a <= 0.1)
    _smoothings(section, arm)


def _smoothings(section: Section, arm: ElasticArm) -> None:
    """Vibration after a step of 10 mrad by the frequency of springs that are 10 % stiffer, and by the smoothing.

    Of one link on a spring, exactly: its error obeys e¨ + 1.1 w² e = 0.1 q¨, for the reference q of flatness.
    """
    frequencies = 3, 5, 8, 10, 12, 15, 20
    table = section.table(
        "Vibration after a step of 10 mrad, springs 10 % stiffer, rms, µrad, by the lowest frequency",
        *("smoothing, s", "longer than 0.02 s by, ms", *(f"{f} Hz" for f in frequencies)),
    )
    t = PERIOD * np.arange(1, 1501)

    def vibration(smoothing: float, frequency: float) -> str:
        online = OnlineTrajectory(arm, PERIOD, GIVEN | {"smoothing": smoothing})
        online.target(np.full(arm.robot.n, 0.01))
        acceleration, w = online.step(len(t))[:, 2, 0], 2 * np.pi * np.sqrt(1.1) * frequency
        size = 0.1 / w * np.abs((acceleration * np.exp(-1j * w * t)).sum()) * PERIOD / np.sqrt(2)
        return f"{1e6 * size:.0f}"

    for smoothing in (0.0, 0.02, 0.05, 0.1, 0.2):
        later = f"{1e3 * (smoothing - 0.02):.0f}"
        table.add(f"{smoothing:g}", later, *(vibration(smoothing, f) for f in frequencies))
    table.add("by default", "", *(vibration(smoothing_for(f), f) for f in frequencies))


def drawing() -> tuple[Array, Stream, Array]:
    """A stream by hand, of the tip of sea_planar_2r: points (K, 2), m, which arrive, and joint angles at the start.

    Four loops of a pen, 10 Hz with 30 % of jitter, and two gaps of 0.4 and 0.3 s; joint angles relative to the start.
    The reference is the motion of the hand.
    """
    draw, t = np.random.default_rng(2), np.arange(0, 6.01, 0.1)

    def point(t: Array) -> Array:
        phase = 2 * np.pi * t / 1.5
        return np.column_stack([0.3 + 0.07 * t - 0.07 * np.sin(phase), -0.2 + 0.08 * (1 - np.cos(phase))])

    points = point(t)
    q = angles_of(points)
    arrive = REST + np.round(1e3 * (t + 0.03 * draw.uniform(size=len(t)))).astype(int)
    kept = np.setdiff1d(np.arange(len(t)), [17, 18, 19, 41, 42])
    speeds = np.gradient(q[kept], t[kept], axis=0)
    events = {int(arrive[k]): (q[k] - q[0], v) for k, v in zip(kept, speeds, strict=True)}
    hand = angles_of(point(np.clip(PERIOD * np.arange(-1000, 7001), 0, 6))) - q[0]
    stream = Stream(events, REST + 7500, lambda t: hand[np.rint(t / PERIOD).astype(int) + 1000])
    return points[kept], stream, q[0]


def write_picture() -> None:
    """Draw paths of the tip, as three generators make them of positions by hand, and distances from references.

    The springs are as in the file, or stiffer.
    """
    arm, (points, stream, start) = ElasticArm(load_robot("sea_planar_2r")), drawing()
    positions = stream._replace(events={k: (q, None) for k, (q, _) in stream.events.items()})
    ways = {
        "quintic segments, as of JTC, rigid feedforward": (segments(arm, stream, order=3), rigid),
        "Ruckig, rigid feedforward, motors at q + τ/K": (ruckig(arm, positions), deflected),
        "eom.OnlineTrajectory and flatness": (ours(arm, positions), flat),
    }
    title = "Positions drawn by hand, 10 Hz with jitter and gaps, on an elastic arm in MuJoCo"
    with picture("online_motion.png", 13, 6.2, title) as figure:
        above, below = figure.subplots(2, 3, sharey="row", height_ratios=[3, 2])
        for path_axes, axes, (name, (states, command)) in zip(above, below, ways.items(), strict=True):
            delay = 1e3 * delay_of(stream, states)
            states[:, 0] += start
            sent = command(arm, states)
            links, other = (followed("sea_planar_2r", sent, start, stiffness) for stiffness in (1.0, 1.1))
            path_axes.plot(*points.T, "o", color="0.6", ms=4, label="positions received")
            path_axes.plot(*tip(states[REST:, 0]).T, color="#66CCEE", lw=3, label="reference made of them")
            path_axes.plot(*tip(links[REST:]).T, color="#AA3377", lw=1.3, label="tip of the arm")
            path_axes.set(title=name, aspect="equal")
            errors = []
            springs = (links, "#AA3377", "springs as modeled"), (other, "#CCBB44", "springs 10 % stiffer")
            for q, color, label in springs:
                away = 1e3 * np.linalg.norm(tip(q) - tip(states[:, 0]), axis=1)[REST:]
                axes.semilogy(PERIOD * np.arange(len(away)), away, color=color, label=label)
                errors.append(f"{rms(away):.2g}")
            axes.set(title=f"rms {' and '.join(errors)} mm, {delay:.0f} ms behind the hand", xlabel="time [s]")
            CONSOLE.print(f"{name}: {errors} mm, delay {delay:.0f} ms")
        above[0].set_ylabel("height [m]")
        below[0].set(ylabel="tip from its reference [mm]", ylim=(1e-5, 1e2))
        entries = zip(above[0].get_legend_handles_labels(), below[0].get_legend_handles_labels(), strict=True)
        figure.legend(*(x + y for x, y in entries), loc="outside lower center", ncols=5, frameon=False)


def online_motion(section: Section, settings: Settings) -> None:
    """Follow all streams by all ways; a whole run writes the pictures docs/online_motion.png and path_time.png, too.

    iiwa and sea_planar_2r in MuJoCo, springs as in the file or 10 % stiffer, commands held for 1 ms, a PD of 70
    rad/s; limits 2 rad/s, 10 rad/s², and default limits of jerk and snap, without snap for Ruckig. *Error*: rms
    of the links to their own reference. *Vibration*: rms of the links about their mean in the half second after the
    reference rests. *Delay*: of the reference behind the motion that was sampled. *Rigid*: inverse dynamics. *τ/K*:
    the same with the deflection of the springs. *JTC*: its segments, lines between positions, cubic with
    velocities, and quintic steps of 0.7 s, with rigid inverse dynamics.
    """
    if not settings.quick:
        write_picture()
        write_pause_picture()
    for name in ("sea_planar_2r", "iiwa"):
        arm = ElasticArm(load_robot(name))
        for label, stream in streams(arm.robot.n, 4.5 if settings.quick else 9.0).items():
            table = section.table(
                f"{name}, {label}",
                *("", "error, mrad: exact; springs +10 %", "vibration, µrad: exact; +10 %"),
                *("delay, ms", "cycles over limits"),
            )
            found = {way: result(name, arm, stream, way) for way in WAYS}
            for way, x in found.items():
                cells = ["; ".join(f"{scale * e:.2g}" for e in y) for scale, y in ((1e3, x.error), (1e6, x.vibration))]
                table.add(way, *cells, "–" if stream.motion is None else f"{1e3 * x.delay:.0f}", str(x.violations))
            _judge(section, f"{name}, {label}", found)
            if stream.motion is None:
                mine, theirs = step_times(arm, stream)
                measured = f"{mine:.3f} s, {mine / theirs:.2f} ×"
                section.promise(f"{name}: steps take at most 1.10 × Ruckig's time", measured, mine <= 1.1 * theirs)
        if name == "iiwa":
            generated(section, arm, 4.0 if settings.quick else 10.0)


def _judge(section: Section, label: str, found: Mapping[str, Result]) -> None:
    """Promises of a stream."""
    own, springs = found["OnlineTrajectory"], found["Ruckig, τ/K"]
    ratio = own.error[0] / springs.error[0]
    section.promise(f"{label}: error at most 1/10 of Ruckig's with τ/K", f"{ratio:.3f}", ratio <= 0.1)
    ratio = max(x / y for x, y in zip(own.vibration, springs.vibration, strict=True))
    section.promise(f"{label}: vibration at most 1/10 of it, exact and +10 %", f"{ratio:.3f}", ratio <= 0.1)
    section.promise(f"{label}: no violation", str(own.violations), own.violations == 0)
    if own.delay == own.delay:
        later = own.delay - springs.delay
        section.promise(f"{label}: at most 25 ms later than Ruckig", f"{1e3 * later:.0f} ms", later <= 0.025)


# --- A pause on the path ----------------------------------------------------------------


def corner() -> Spline:
    """The fastest motion of the panda's tool around a corner of a table, joint by joint through points of it."""
    arm, q, positions = ElasticArm(load_robot("panda")), np.array([0, 0.4, 0, -1.6, 0, 2.0, 0.8]), []
    angles = np.linspace(0, np.pi / 2, 4)
    along_y, along_x = [(0.55, y) for y in (-0.35, -0.28, -0.2, -0.12)], [(x, 0.05) for x in (0.38, 0.31, 0.24)]
    for x, y in [*along_y, *zip(0.45 + 0.1 * np.cos(angles), -0.05 + 0.1 * np.sin(angles), strict=True), *along_x]:
        q = inverse_kinematics(arm.robot, lie.pose(np.diag([1.0, -1.0, -1.0]), [x, y, 0.4]), start=q).q
        positions.append(q)
    return minimum_time(arm, positions)


def stopped(arm: ElasticArm, motion: Spline, t: float) -> Array:
    """Positions (N, n) of setpoints of a motion, and of the joint stop after the last setpoint at time t, s."""
    loop, rows = ControlLoop(RobotTable(arm)), []
    loop.configure(safety="permissive")
    for k in range(round((t + 1.0) * 1e9 / CYCLE)):
        now = k * CYCLE
        if now < 1e9 * t:
            for name, row in zip(STATE_NAMES, motion.derivatives(1e-9 * now), strict=True):
                loop.given[name][:] = row
            loop.refer(START + now)
        elif now - CYCLE < 1e9 * t:
            loop.act("stop")
            loop.update(START + now, 1e-3)  # once more the last command
            continue
        loop.update(START + now, 1e-3)
        rows.append(loop.state[0].copy())
    return np.array(rows)


def write_pause_picture(t: float = 0.38) -> None:
    """Draw a pause and a joint stop that begin at ``t``, s, in a fast corner: the tool from above."""
    motion, arm = corner(), ElasticArm(load_robot("panda"))
    pose = Kinematics(arm.robot).pose
    (paused, *_), _ = played(arm, motion, [(t, "pause")], t + 1.0)
    ways = {
        "stop of the joints, after setpoints are lost": ("#EE6677", stopped(arm, motion, t)),
        "pause of a trajectory": ("#228833", paused[:, 0]),
    }
    title = "A Panda during its fastest motion around a corner, tool seen from above"
    with picture("path_time.png", 12, 5, title, legend=4) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
        whole = pose(motion.derivatives(np.linspace(motion.start, motion.end, 20_000), 0)[0])[:, :2, 3]
        left.plot(*whole.T, color="0.8", lw=7, label="path")
        for label, (color, q) in ways.items():
            tool = pose(q)[:, :3, 3]
            time_since = 1e-9 * CYCLE * np.arange(len(tool)) - t
            left.plot(*tool[:, :2].T, color=color, lw=2, label=label)
            left.plot(*tool[-1, :2], "o", color=color, ms=8)
            speed = np.linalg.norm(np.gradient(tool, 1e-9 * CYCLE, axis=0), axis=1)
            right.plot(time_since[:-1], speed[:-1], color=color, lw=2)
            away = 1e3 * np.min(np.linalg.norm(whole - tool[-1, :2], axis=1))
            CONSOLE.print(f"{label}: at rest {away:.1f} mm from the path")
        left.plot(*pose(motion.derivatives(t, 0)[0])[:2, 3], "k^", ms=8, label="pose at the request")
        left.set(aspect="equal", xlabel="[m]")
        right.axvline(0.0, color="0.5", lw=1)
        right.set(title="speed of the tool [m/s]", xlabel="time since then [s]")
