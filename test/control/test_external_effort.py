# SPDX-License-Identifier: Apache-2.0
"""Observer of external efforts: against the paper's matrices, MuJoCo, theory, and what is left out."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from paths import PANDA_BAG
from pushed_arm import Push, PushedArm, SensorRecord
from reference.momentum_observer import momentum_observer
from scipy.interpolate import CubicSpline
from scipy.signal import butter, filtfilt, lsim

import eom_dynamics as eom
from eom_dynamics import ExternalEffortObserver
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import LoopHandle
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.export.functions import OBSERVER, functions
from eom_dynamics.identification import Options, fit, identified_robot
from eom_dynamics.recordings.joint_recordings import read_recording
from eom_dynamics.trajectory import Cosine

L = 30.0
BY_SENSORS = {"torque": ("links", "torque", "motors", "efforts"), "springs": ("links", "motors", "efforts")}
BY_SENSORS["motor"] = ("motors", "efforts")
PUSH = np.array([3.0, -2.0, 4.0, 1.5, 1.0, -2.0])


@cache
def arm(name: str) -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(name))


def motion(n: int, amplitude: float) -> Cosine:
    return Cosine(np.full(n, amplitude), 1.5 + 0.2 * np.arange(n), np.arange(float(n)))


@cache
def recorded(name: str, shape: str, body: int, amplitude: float = 0.4, **factors: float) -> SensorRecord:
    shapes = {"none": lambda t: 0.0, "step": lambda t: float(t > 0.1005), "ramp": lambda t: 5 * max(0.0, t - 0.1)}
    size = shapes.get(shape, lambda t: np.sin(6 * np.pi * t))
    push: Push = lambda t: (body, size(t) * PUSH)  # noqa: E731
    return PushedArm(name, push, **factors).record(arm(name), motion(arm(name).robot.n, amplitude), 0.5)


def filtered(record: SensorRecord, order: int) -> Array:
    """The efforts of the push behind the filter of the theory."""
    transfer = ([L], [1, L]) if order == 1 else ([2 * L, L * L], [1, 2 * L, L * L])
    return np.stack([lsim(transfer, x, record.t)[1] for x in record.external.T], axis=1)


def observed(record: SensorRecord, name: str, sensors: str, order: int = 1) -> Any:
    observer = ExternalEffortObserver(arm(name), L, sensors, order=order)
    return observer.observe(record.t, **record.sensors(*BY_SENSORS[sensors]))


PUSHED = [("iiwa", body) for body in (1, 6)] + [("sea_planar_2r", body) for body in range(2)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("name", "body"), PUSHED)
@pytest.mark.parametrize("shape", ["step", "ramp", "sine"])
def test_a_push_passes_the_filter_of_the_theory(name: str, body: int, shape: str, order: int) -> None:
    """On a moving arm of MuJoCo, within 1 % of the largest effort."""
    record = recorded(name, shape, body)
    scale = np.abs(record.external).max()
    for sensors in ("torque", "springs"):
        found = observed(record, name, sensors, order)
        assert not found.left_out
        # Wrists swing at 110 Hz after a step, of which the trapezoids of 1 ms miss 4 %.
        most = 0.012 if shape == "step" else 0.01
        assert np.abs(found.external - filtered(record, order)).max() < most * scale, sensors


@pytest.mark.parametrize("name", ["iiwa", "sea_planar_2r"])
def test_efforts_of_motors_tell_a_push(name: str) -> None:
    """Links are motors less deflections: below the lowest resonance, a ramp after the first transient, within 2 %."""
    record = recorded(name, "ramp", arm(name).robot.n - 1)
    error = np.abs(observed(record, name, "motor").external - filtered(record, 1))[350:]
    # Efforts of the drives' PD change between commands, of which a sample has the mean: 0.15 N m of the iiwa.
    assert error.max() < 0.02 * np.abs(record.external).max() + 0.15 * (name == "iiwa")


def test_motors_tell_friction_from_contact() -> None:
    """Half as much friction again is in the residual of the motors alone, and a push at a link in that of links."""
    name, n = "sea_planar_2r", 2
    friction = [joint.actuator.friction for joint in arm(name).robot.joints]
    record = recorded(name, "none", 0, friction=1.5)
    found = observed(record, name, "springs")
    law = np.stack([friction[i].effort(record.motor_velocity[:, i]) for i in range(n)], axis=1)
    wanted = np.stack([lsim(([L], [1, L]), -0.5 * x, record.t)[1] for x in law.T], axis=1)
    late = slice(170, None)
    np.testing.assert_allclose(found.motor[late], wanted[late], atol=0.03 * np.abs(wanted).max())
    assert np.abs(found.external).max() < 1e-3
    pushed = observed(recorded(name, "step", 1), name, "springs")
    assert np.abs(pushed.external).max() > 1.0
    assert np.abs(pushed.motor).max() < 0.02


UNEVEN = np.cumsum(np.random.default_rng(1).choice([1e-3, 2e-3, 9e-3], 60))


def model_samples(name: str, t: Array, external: Array | float = 0.0, payload: Any = None) -> dict[str, Array]:
    states = motion(arm(name).robot.n, 0.5).derivatives(t)
    tau = arm(name).dynamics.effort(*states[:3], payload=payload)
    return {"q": states[0], "qd": states[1], "tau": tau - external}


@pytest.mark.parametrize("name", ["iiwa", "sea_planar_2r", "dual_arm", "planar_pr", "vsa_planar_2r"])
def test_the_residual_is_that_of_the_papers_matrices(name: str) -> None:
    """At uneven times; both integrate the same samples, the reference in small explicit steps."""
    n = arm(name).robot.n
    samples = model_samples(name, UNEVEN, np.outer(np.sin(9 * UNEVEN), 1.0 + np.arange(n)))
    found = ExternalEffortObserver(arm(name), L).observe(UNEVEN, **samples).external
    rows = zip(UNEVEN, *samples.values(), strict=True)
    wanted = momentum_observer(arm(name).robot, L, rows, steps=200)
    # Explicit steps of L h/200, h to 9 ms: 7e-4.
    np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


def test_batches_and_samples_have_the_same_bits() -> None:
    record = recorded("sea_planar_2r", "sine", 1)
    for sensors, kinds in BY_SENSORS.items():
        for order in (1, 2):
            observer = ExternalEffortObserver(arm("sea_planar_2r"), L, sensors, order=order)
            whole = observer.observe(record.t, **record.sensors(*kinds))
            observer.reset()
            for k, t in enumerate(record.t[:150]):
                one = observer.update(t, **{name: x[k] for name, x in record.sensors(*kinds).items()})
                assert (one == whole.external[k]).all()
                assert np.array_equal(observer.motor_residual, whole.motor[k], equal_nan=True)
                assert observer.settled == whole.settled[k]


def test_a_change_of_the_payload_makes_no_step() -> None:
    """From the weight of a payload that is not known to nothing, by the filter alone."""
    name, t = "iiwa", 1e-3 * np.arange(1000)
    payload = eom.Payload(3.0, [0.02, 0.0, 0.1], [0.01, 0.0, 0.0, 0.01, 0.0, 0.01])
    samples = model_samples(name, t, payload=payload)
    known = np.where((t > 0.5)[:, None], payload.parameters, 0.0)
    found = ExternalEffortObserver(arm(name), L).observe(t, **samples, payload=[known]).external
    weight = np.abs(samples["tau"] - model_samples(name, t)["tau"]).max()
    assert np.abs(found[499]).max() > 5.0
    assert np.abs(np.diff(found, axis=0)).max() < L * 1e-3 * weight
    assert np.abs(found[-1]).max() < 1e-5 * weight
    whole = ExternalEffortObserver(arm(name), L).observe(t, **samples, payload=payload).external
    assert np.abs(whole).max() < 1e-4 * weight


def test_samples_that_are_left_out() -> None:
    """Each kind is named, in a stream by an error, and the next sample goes on where the last good one was."""
    name, t = "panda", 1e-3 * np.arange(300)
    good = model_samples(name, t)
    wanted = ExternalEffortObserver(arm(name), L).observe(t, **good).external

    def spoilt(which: str, rows: Any, value: Any) -> Any:
        samples = {key: x.copy() for key, x in good.items()}
        samples[which][rows] = value
        return samples

    swapped = good["q"].copy()
    swapped[150:152] = swapped[150:152, ::-1]
    for samples, reason in (
        (spoilt("qd", (150, 3), np.nan), "a sensor is not finite"),
        (spoilt("q", (150, 3), 2.0), "fer_joint4: position and velocity disagree"),
        (good | {"q": swapped}, "fer_joint2: position and velocity disagree"),
        (spoilt("tau", (150, 3), 1e4), "fer_joint4: the effort is more than twice"),
    ):
        found = ExternalEffortObserver(arm(name), L).observe(t, **samples)
        assert reason in found.left_out[0] and found.left_out[0].startswith("sample 150: ")
        assert len(found.left_out) <= 2
        assert np.isnan(found.external[150]).all()
        np.testing.assert_allclose(found.external[160:], wanted[160:], atol=1e-2)
    observer = ExternalEffortObserver(arm(name), L)
    rows = [{key: x[k] for key, x in good.items()} for k in range(3)]
    observer.update(0.0, **rows[0])
    observer.update(0.001, **rows[1])
    with pytest.raises(eom.StateError, match=r"0\.001.*increase"):
        observer.update(0.001, **rows[1])
    with pytest.raises(eom.StateError, match=r"entry.*\[2\]"):
        observer.update(0.002, **rows[2] | {"tau": [0, 0, np.nan, 0, 0, 0, 0]})
    with pytest.raises(eom.StateError, match=r"fer_joint3.*disagree"):
        observer.update(0.002, **rows[2] | {"q": rows[2]["q"] + np.eye(7)[2]})
    assert np.abs(observer.update(0.002, **rows[2]) - wanted[2]).max() < 1e-12


def test_a_stuck_sensor_is_found() -> None:
    """An encoder that stands still while its joint moves, within what 0.1 s of motion covers."""
    t = 1e-3 * np.arange(1000)
    samples = model_samples("panda", t)
    samples["q"][300:, 5] = samples["q"][300, 5]
    found = ExternalEffortObserver(arm("panda"), L).observe(t, **samples)
    assert 300 < int(found.left_out[0].split(":")[0].removeprefix("sample ")) < 400
    assert "fer_joint6: position and velocity disagree" in found.left_out[0]


def test_a_long_gap_starts_again() -> None:
    t = 1e-3 * np.arange(600)
    t[300:] += 0.2
    samples = model_samples("iiwa", t, 5.0)
    found = ExternalEffortObserver(arm("iiwa"), L).observe(t, **samples)
    assert (found.external[300] == 0).all() and not found.left_out
    assert found.settled.tolist() == [299 >= k >= 167 or k >= 467 for k in range(600)]


@pytest.mark.parametrize("sensors", ["springs", "motor"])
def test_every_spring_at_rest_under_a_load(sensors: str) -> None:
    """Springs of every kind, a transmission, a pair and a coupled spring: motors of the feedforward at rest."""
    from springs import EVERY_KIND, with_springs

    bare = eom.load_robot("planar_2r")
    robots = [with_springs(bare, EVERY_KIND[x], EVERY_KIND[x], rotor_inertia=0.1) for x in EVERY_KIND if x != "rigid"]
    arms = [eom.ElasticArm(robot) for robot in robots]
    arms.append(eom.ElasticArm(bare, stiffness=[[300.0, 40.0], [40.0, 200.0]]))
    arms.append(arm("vsa_planar_2r"))
    q, rest, t = np.array([0.4, -0.7]), np.zeros(2), 1e-3 * np.arange(400)
    for one in arms:
        W = np.array([0.3, 0.2, 1.0, 2.0, -1.0, 0.5])
        y = one.feedforward(q, rest, rest, wrench=[W])
        wanted = one.dynamics.gravity(q) - y.tau  # what the surroundings exert, the robot exerts against them
        values = {"motor_position": y.motor_position, "motor_velocity": y.motor_velocity}
        values |= {"q": q, "qd": rest} if sensors == "springs" or one.paired.any() else {}
        values |= {"motor_effort": y.motor_effort} if sensors == "motor" else {}
        rows = {name: np.tile(x, (len(t), 1)) for name, x in values.items()}
        found = ExternalEffortObserver(one, L, sensors).observe(t, **rows)
        assert not found.left_out
        np.testing.assert_allclose(found.external[-1], wanted, atol=1e-4 * np.abs(wanted).max())


def test_sensors_by_joint_and_refusals() -> None:
    one = eom.ElasticArm(eom.load_robot("planar_2r"), stiffness=[np.inf, 100.0])
    for sensors, reason in (
        ("springs", "joint_1: a rigid joint has no deflection to be measured; give 'torque' or 'motor'"),
        ("torqe", "sensors has no 'torqe'; did you mean torque?"),
        (None, "sensors has no None; known are torque"),
        (["torque"], r"sensors has 1 entries, must have 2 .*single name"),
    ):
        with pytest.raises(eom.StateError, match=reason):
            ExternalEffortObserver(one, L, sensors)
    with pytest.raises(eom.StateError, match="bandwidth must be positive"):
        ExternalEffortObserver(one, 0.0)
    observer = ExternalEffortObserver(one, L, ["torque", "motor"])
    with pytest.raises(eom.StateError, match="sensors"):
        observer.update(0.0, [0, 0], [0, 0], motor_position=[0, 0], motor_velocity=[0, 0], motor_effort=[0, 0])
    with pytest.raises(eom.StateError, match=r"signal.*'tua'"):
        observer.update(0.0, [0, 0], [0, 0], tua=[0, 0])


def test_a_robot_without_code_of_the_observer() -> None:
    """Functions that it would call come together; a loop that has none of them refuses to observe."""
    planar = eom.ElasticArm(eom.load_robot("planar_2r"), stiffness=100.0)
    for name in OBSERVER:
        assert functions(planar.robot, planar.side, [name], "x").keys() == {*OBSERVER}
    handle, order = LoopHandle(RobotTable(planar)), np.ones(2)
    assert b"generate it again" in handle.library.observer_set(handle.address, b"order", order.ctypes.data, 2)


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
def test_a_panda_without_contact() -> None:
    """External efforts are within what its model leaves, and an identified one, behind the filter of the observer."""
    robot = arm("panda").robot
    recording = read_recording(PANDA_BAG, robot)
    t, tau = recording.t, recording.tau
    low_pass = butter(4, 2.5, fs=1 / np.median(np.diff(t)))  # above it positions are noise
    smooth = CubicSpline(t, filtfilt(*low_pass, recording.q, axis=0))
    q, qd, qdd = (smooth(t, order) for order in range(3))
    identified = eom.ElasticArm(identified_robot(fit(robot, recording, options=Options(side="joint", cutoff=2.5))))
    worst = []
    for one in (arm("panda"), identified):
        left = np.sqrt(np.mean((one.dynamics.effort(q, qd, qdd) - tau)[20:-20] ** 2, axis=0))
        for bandwidth in (5.0, 20.0):
            found = ExternalEffortObserver(one, bandwidth).observe(t, q, qd, tau=tau)
            assert not found.left_out
            external = np.sqrt(np.mean(found.external[found.settled][:-20] ** 2, axis=0))
            assert np.all(external < 1.02 * left), bandwidth
            worst.append(external.max())
    assert worst[2] < 0.5 * worst[0] and worst[3] < 0.7 * worst[1]
