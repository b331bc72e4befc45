# SPDX-License-Identifier: Apache-2.0
"""Identification of simulated robots with known parameters."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from excited import efforts, motion, true_robot
from excited import recording as excited_recording
from refusals import refusals
from springs import with_springs

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators.actuator import Transmission
from eom_dynamics.actuators.parallel_springs import Anchors, GasLaw, ParallelSpring, SignedLinearLaw, TableLaw
from eom_dynamics.actuators.parameters import written_entries
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.correlation import correlation_time
from eom_dynamics.identification import Fit, IdentificationError, Options, Recording, Regressor, fit, identified_robot
from eom_dynamics.identification.links.consistent import pseudo_inertia as pseudo_inertia_of
from eom_dynamics.identification.links.equations import equations, weighted
from eom_dynamics.identification.links.filtering import default_filter, filter_recording, filtered_motion
from eom_dynamics.identification.links.solutions import unfiltered_errors
from eom_dynamics.identification.links.verification import ScoringData
from eom_dynamics.identification.sampling import root_mean_square, whiteness
from eom_dynamics.robot.inertia import Inertial, steiner
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.identify.run import IdentificationResult
from eom_dynamics.tools.identify.summary import identification_result

# Given in tests of other properties than the choice.
QUICK = Options(cutoff=8.0, prior_weight=1.0)


def recording(robot: Robot, true: Robot, side: str = "joint", **options: Any) -> Recording:
    """A recording of 40 s at 100 Hz; filters and regressors of more samples take most of the time."""
    return excited_recording(robot, true, side, **{"rate": 100.0, **options})


@cache
def arm(side: str = "joint") -> tuple[Robot, Robot, Recording, Fit]:
    """The robot of a file, the true one, its recording, and a fit."""
    robot = load_robot("sea_planar_2r")
    true = true_robot(robot, side)
    source = recording(robot, true, side)
    return robot, true, source, fit(robot, source, options=replace(QUICK, side=side))


def base_of(robot: Robot, found: Fit) -> np.ndarray:
    return found.regressor.base(Dynamics(robot, order=0, backend="numpy").inertial_parameters)


def z_scores(true: Robot, found: Fit) -> np.ndarray:
    """Errors of the linear estimate of identifiable base parameters, in standard deviations."""
    count = found.regressor.inertial
    errors = (found.estimate.x[:count] - base_of(true, found)) / found.base_deviations[:count]
    return errors[np.isfinite(found.base_deviations[:count])]


def with_second(robot: Robot, **changes: Any) -> Robot:
    return replace(robot, joints=(robot.joints[0], replace(robot.joints[1], **changes)))


def check_friction(found: Fit, true: Robot, side: str, rtol: float = 0.03) -> None:
    laws = [j.friction_law if side == "joint" else j.actuator.friction for j in true.independent_joints]
    for term in ("viscous", "coulomb"):
        np.testing.assert_allclose(found.terms[term], [getattr(law, term) for law in laws], rtol=rtol)


def is_possible(parameters: np.ndarray) -> bool:
    return all(np.linalg.eigvalsh(pseudo_inertia_of(pi))[0] > 0 for pi in parameters.reshape(-1, 10) if pi[0])


@pytest.mark.parametrize("side", ["joint", "motor"])
def test_parameters_of_a_planar_arm(side: str) -> None:
    _, true, _, found = arm(side)
    assert np.all(np.abs(z_scores(true, found)) < 3)
    check_friction(found, true, side)
    assert np.all(np.abs(found.terms["offset"]) < 4 * found.term_deviations["offset"])
    assert is_possible(found.parameters)
    if side == "motor":
        # The rotor of joint 1 turns with the arm: only the sum with its inertia shows.
        assert found.term_identifiable["rotor_inertia"].tolist() == [False, True]
        assert found.terms["rotor_inertia"][1] == pytest.approx(true.joints[1].rotor_inertia, rel=0.02)
        assert any("rotor_inertia of joint_1 is not identifiable" in note for note in found.notes)
        sums = [r.rotor_inertia[0] + base_of(r, found)[2] for r in (true, identified_robot(found))]
        assert sums[1] == pytest.approx(sums[0], rel=0.02)


def test_unidentifiable_terms_stay_as_in_the_file() -> None:
    """A rotor that turns with its link, missing in the file, is not invented from data without accelerations."""
    robot = with_springs(load_robot("sea_planar_2r"), RIGID, rotor_inertia=0.0)
    source = recording(robot, true_robot(robot, "motor"), "motor")
    slow = replace(source, t=1000 * source.t)
    found = fit(robot, slow, options=replace(QUICK, side="motor", cutoff=0.008))
    assert found.term_of_file["rotor_inertia"][0] and not found.term_of_file["viscous"].any()
    assert identified_robot(found).joints[0].rotor_inertia == 0
    assert "rotor_inertia of joint_1 is not identifiable from these data: as in the file" in found.notes
    # In quick data the link has the inertia of both.
    quick = fit(robot, source, options=replace(QUICK, side="motor"))
    assert quick.terms["rotor_inertia"][0] == 0
    assert np.all(quick.training.after < 0.01 * quick.training.spread)


def test_offsets_of_sensors_and_of_the_arm() -> None:
    """By the option, a counterbalance is in the file, a sensor bias is not; figures describe the file."""
    robot, _, source, _ = arm()
    biased = replace(source, tau=source.tau + np.array([0.0, 3.0]))
    of_arm, sensor = (fit(robot, biased, options=replace(QUICK, offset=kind)) for kind in ("arm", "sensor"))
    assert identified_robot(of_arm).joints[1].constant_effort == pytest.approx(3.0, abs=0.02)
    assert identified_robot(sensor).joints[1].constant_effort == 0
    # The file is compared with efforts without the bias, which is reported separately.
    assert sensor.sensor_bias[1] == pytest.approx(3.0, abs=0.02) and not of_arm.sensor_bias.any()
    assert sensor.training.after[1] == pytest.approx(of_arm.training.after[1], rel=0.05)
    assert sensor.training.after[1] == pytest.approx(of_arm.training.after[1], rel=0.02)
    results = (IdentificationResult(robot, robot, found, None, (), ()) for found in (sensor, of_arm))
    texts = [identification_result(result, {}).as_text() for result in results]
    assert "against efforts less the bias of the sensors: joint_1 " in texts[0] and "less the" not in texts[1]
    # Identified again from its own file, nothing changes.
    again = fit(identified_robot(of_arm), biased, options=replace(QUICK, terms=("viscous", "coulomb")))
    assert again.kept == () and again.training.after[1] == pytest.approx(of_arm.training.after[1], rel=0.01)
    assert identified_robot(again).joints[1].constant_effort == pytest.approx(3.0, abs=0.02)


ANCHORS = Anchors(0.4, 0.15, -2.0, 0.5)
TABLE = TableLaw(np.linspace(-1.5, 1.5, 5), np.array([6.0, -2.0, 1.0, 5.0, -4.0]))
LINE = ("viscous", "coulomb", "parallel_spring", "offset")


@pytest.mark.parametrize(
    ("spring", "of_file", "options", "constant_effort"),
    [
        (ParallelSpring(SignedLinearLaw(20.0), 0.4), None, {"terms": LINE}, pytest.approx(-20.0 * 0.4, rel=0.02)),
        (ParallelSpring(TABLE), ParallelSpring(TABLE.scaled(0.6)), {}, pytest.approx(0.0, abs=0.5)),
        (
            *(ParallelSpring(GasLaw(force, 0.25, 1.4), anchors=ANCHORS) for force in (700.0, 500.0)),
            {"offset": "sensor"},
            0.0,
        ),
    ],
    ids=["line", "table", "gas"],
)
def test_parallel_springs(spring: ParallelSpring, of_file: ParallelSpring | None, options: Any, constant_effort: Any):
    """A line that the file does not have, the scale of a table, and the preload of a gas spring."""
    robot, true, *_ = arm()
    source = recording(robot, with_second(true, parallel_spring=spring))
    if isinstance(spring.law, GasLaw):  # in addition to a sensor bias
        source = replace(source, tau=source.tau + np.array([0.0, 1.5]))
    found = fit(with_second(robot, parallel_spring=of_file), source, options=replace(QUICK, **options))
    joint = identified_robot(found).joints[1]
    law = joint.parallel_spring.law
    assert type(law) is type(spring.law) and joint.constant_effort == constant_effort
    if isinstance(law, TableLaw):
        np.testing.assert_allclose(law.tau, TABLE.tau, rtol=0.05)
    elif isinstance(law, GasLaw):
        assert law.force == pytest.approx(700.0, rel=0.02)
        assert found.terms["offset"][1] == pytest.approx(1.5, abs=0.4)
        # Candidates of a filter are compared with the spring: the residual is the noise of the sensors.
        (part,) = found.prepare(source)
        assert np.all(root_mean_square(unfiltered_errors(found.regressor, part, found.filter, found.vector)) < 2.0)
    else:
        assert law.constant == pytest.approx(20.0, rel=0.01)


def test_figures_are_those_of_the_file(tmp_path: Path) -> None:
    """By the call of the documentation, for the written and reloaded file."""
    *_, source, found = arm()
    path = tmp_path / "arm.yaml"
    path.write_text(robot_as_yaml(identified_robot(found)).text)
    states = filtered_motion(source, found.filter, 4)
    tau = ElasticArm(load_robot(path)).feedforward(*states.states).tau
    spread = load_robot(path).joints[1].effort_spread
    assert spread == found.training.spreads[1] and spread is not None and len(spread.deviation) == 4
    # Quarters of the samples by speed.
    np.testing.assert_allclose(root_mean_square(np.array(spread.deviation)), found.training.after[1], rtol=1e-3)
    whole = np.hypot(root_mean_square(np.array(spread.deviation)), spread.noise)
    np.testing.assert_allclose(whole, max(found.training.unfiltered[1], found.training.after[1]), rtol=1e-3)
    assert spread.velocity_noise == 0  # velocities are not recorded
    noisy = states.states[1] + 3e-3 * np.random.default_rng(0).standard_normal(source.q.shape)
    scoring = ScoringData([replace(source, qd=noisy)], found.filter, load_robot(path), motor_side=False)
    noises = [x.velocity_noise for x in scoring.score(load_robot(path), np.zeros(2)).spreads if x]
    np.testing.assert_allclose(noises, 3e-3, rtol=0.1)
    assert (np.diff(spread.velocity) > 0).all() and 0 < spread.correlation_time < 1
    error = tau - source.tau
    errors = [root_mean_square(x[states.inner]) for x in (states.smooth(error), error)]
    np.testing.assert_allclose(errors, [found.training.after, found.training.unfiltered], rtol=1e-9)


def test_worse_joints_keep_what_was_given() -> None:
    """Efforts of one joint in another sign: the file that was given stays the better one on data that are right."""
    robot, true, training, _ = arm()
    validation = recording(robot, true, seed=1)
    wrong = replace(training, tau=training.tau * [1.0, -1.0])
    found = fit(robot, wrong, validation, replace(QUICK, suspect="use"))
    assert found.kept == ("joint_2",) and found.rejected is not None
    assert found.rejected.worse[1]
    assert found.validation is not None and not found.validation.worse.any()


def test_joint_is_worse_beyond_5_percent() -> None:
    """If the added error also exceeds 1 % of the efforts."""
    score = replace(
        arm()[-1].training, before=np.array([0.2, 0.1]), after=np.array([0.1, 0.104]), spread=np.full(2, 0.5)
    )
    assert not score.worse.any() and score.ratio == pytest.approx(np.sqrt(0.52))
    assert replace(score, after=np.array([0.1, 0.106])).worse.tolist() == [False, True]
    assert not replace(score, after=np.array([0.1, 0.106]), spread=np.full(2, 0.7)).worse.any()


def test_note_on_better_least_squares_names_the_cause() -> None:
    """Friction that drives, for example by a velocity offset, is impossible for a robot; least squares find it."""
    robot, true, source, found = arm()
    assert not any("least squares" in line for line in found.notes)
    driven = replace(true, joints=tuple(replace(x, damping=0.0, friction=0.0) for x in true.joints))
    q, qd, qdd = motion(2, source.t)
    tau = efforts(driven, q, qd, qdd) - qd * [0.0, 0.2]
    noisy = replace(source, tau=tau + 0.01 * np.random.default_rng(0).standard_normal(q.shape))
    (line,) = (x for x in fit(robot, noisy, options=QUICK).notes if "least squares" in x)
    assert "joint_2 (0." in line and line.endswith("likely cause: unmodeled friction")


def test_no_joint_is_identified_if_the_arm_is_not_better() -> None:
    """An identified file, and other parameters from efforts of another scale."""
    _, _, source, found = arm()
    again = fit(identified_robot(found), replace(source, tau=1.003 * source.tau), source, QUICK)
    assert again.refused and again.rejected is not None and again.rejected.ratio >= 1


def test_coupled_wrist() -> None:
    """A transmission with a first motor that moves both joints, as in wrists; friction is at the motors."""
    coupling = ((0, 1), Transmission(np.array([[1.0, 0.0], [-0.8, 1.0]])))
    robot = replace(with_springs(load_robot("sea_planar_2r"), RIGID), transmission=coupling)
    true = true_robot(robot, "motor")
    spring = ParallelSpring(SignedLinearLaw(9.0), 0.2)  # in the file as on the arm: its joint has no term
    robot, true = (with_second(x, parallel_spring=spring) for x in (robot, true))
    loaded = replace(true, joints=(replace(true.joints[0], constant_effort=2.0), true.joints[1]))
    source = recording(robot, loaded, "motor")
    found = fit(robot, source, options=replace(QUICK, side="motor"))
    check_friction(found, true, "motor", 0.05)
    assert found.kept == ()
    assert np.all(found.training.after < 0.01 * found.training.spread)
    (part,) = found.prepare(source)
    left = root_mean_square(unfiltered_errors(found.regressor, part, found.filter, found.vector))
    assert np.all(left < 0.03 * found.training.spread)
    again = identified_robot(found)
    error = 4 * float(np.sum(found.term_deviations["offset"]))
    assert error < 0.4
    assert [joint.constant_effort for joint in again.joints] == pytest.approx([2.0, 0.0], abs=error)
    assert again.joints[1].parallel_spring is not None
    assert written_entries(again.joints[1].parallel_spring) == written_entries(spring)
    # Predictions of the fit equal the feedforward of its file, with the transmission.
    q, qd, qdd = motion(2, np.linspace(0.0, 5.0, 50))
    zero = np.zeros_like(q)
    efforts_of_file = ElasticArm(again).feedforward(q, qd, qdd, zero, zero).motor_effort
    np.testing.assert_allclose(efforts_of_file, efforts(again, q, qd, qdd, "motor"), atol=1e-9)


@pytest.mark.parametrize("runs", [8, pytest.param(20, marks=pytest.mark.soak)])
def test_deviations_are_honest(runs: int) -> None:
    """In runs with different noise, 95 % of base parameters are within 3 standard deviations, and not far within."""
    robot, true, *_ = arm()
    scores = []
    for seed in range(runs):
        source = recording(robot, true, seed=seed, rate=60.0, duration=25.0)
        scores.append(z_scores(true, fit(robot, source, options=QUICK)))
    errors = np.array(scores)
    assert np.mean(np.all(np.abs(errors) < 3, axis=1)) >= 0.95
    # 48 samples of a normal distribution have an RMS from 0.7 to 1.3, and 120 from 0.8 to 1.2; correlation of residuals
    # is estimated roughly.
    assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.3


def test_cutoff_and_velocity_are_chosen() -> None:
    robot, true, *_ = arm()
    source = recording(robot, true, velocity=True)
    rough = replace(source, q=source.q + 1e-3 * np.random.default_rng(5).standard_normal(source.q.shape))
    found = fit(robot, rough, options=Options(prior_weight=1.0))
    assert found.filter.measured_velocity
    assert len(found.trials) > 3
    assert found.filter.cutoff == min(found.trials, key=lambda trial: trial.error).cutoff
    wrong = replace(rough, qd=2.0 * source.qd)  # velocities of another unit predict nothing
    assert not fit(robot, wrong, options=Options(prior_weight=1.0)).filter.measured_velocity


def test_bodies_are_possible_where_efforts_have_the_wrong_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """No masses explain such efforts: bodies go to the edge of the possible cone, and stay within it."""
    robot, _, source, _ = arm("motor")
    options = replace(QUICK, side="motor", prior_weight=0.1, suspect="use")
    found = fit(robot, replace(source, tau=-source.tau), options=options)
    values = np.linalg.eigvalsh(pseudo_inertia_of(found.parameters.reshape(-1, 10)))
    # Far above the rounding errors of the largest eigenvalue.
    assert np.all(values[:, 0] > 1e-13 * values[:, -1]) and np.all(values[:, -1] > 0)
    stopped = "the optimizer stopped before it converged"
    assert stopped not in found.notes
    monkeypatch.setattr("eom_dynamics.identification.links.consistent._MOST_STEPS", 3)
    assert stopped in fit(robot, source, options=options).notes


def test_weights_of_joints() -> None:
    """A joint with noise a hundred times as large counts a hundred times less."""
    robot, true, source, _ = arm()
    loud = source.tau + np.array([10.0, 0.0]) * np.random.default_rng(1).standard_normal(source.tau.shape)
    regressor = Regressor(robot, ("viscous", "coulomb"))
    samples = filter_recording(replace(source, tau=loud), regressor.terms, default_filter(robot, 8.0))
    system = equations(regressor, samples)
    file = np.append(regressor.parameters_of_file, np.zeros(4))
    truth = regressor.base(Dynamics(true, order=0).inertial_parameters)
    A, b = system.weighted(np.ones(2))  # of all joints alike
    estimates = weighted(system, file).x, np.linalg.lstsq(A, b, rcond=None)[0]
    own = slice(3, 6)  # of joint 2, also affecting the efforts of joint 2
    even, uneven = (np.abs(x[own] - truth[own]).max() for x in estimates)
    assert even < 0.2 * uneven


def test_payload() -> None:
    """A payload of 1.5 kg on the last body; everything else is known."""
    _, true, *_ = arm()
    mass, center, moments = 1.5, np.array([0.3, 0.1, 0.0]), np.diag([0.01, 0.02, 0.03])
    about_origin = moments + steiner(mass, center)
    last = true.joints[-1]
    loaded = last.with_inertial(last.inertial + Inertial(mass, center, about_origin))
    source = recording(true, replace(true, joints=(*true.joints[:-1], loaded)))
    found = fit(true, source, options=replace(QUICK, payload="joint_2"))
    payload = (found.parameters - Dynamics(true, order=0).inertial_parameters)[10:]
    # Identifiable from a planar arm: mass, center of mass in the plane, inertia about the axis.
    assert payload[0] == pytest.approx(mass, abs=4 * found.parameter_deviations[10])
    np.testing.assert_allclose(payload[1:3], mass * center[:2], atol=0.02)
    assert payload[9] == pytest.approx(about_origin[2, 2], rel=0.05)
    assert is_possible(payload)
    assert any(note.startswith("payload on joint_2: mass") for note in found.notes)
    np.testing.assert_array_equal(found.terms["viscous"], [joint.damping for joint in true.joints])


def with_second_at_rest(source: Recording) -> Recording:
    q = source.q * [1.0, 0.0] + [0.0, 0.3]
    return replace(source, q=q, tau=Dynamics(arm()[1], order=0, backend="numpy").effort(q, 0 * q, 0 * q))


def with_other_clocks(source: Recording) -> Recording:
    rows = np.arange(len(source))
    return replace(source, t=source.t - 7.0 * (rows >= 1500) + 100.0 * (rows >= 3000))


@pytest.mark.parametrize(
    ("change", "note", "second"),
    [
        (lambda r: replace(r, tau=50 * np.random.default_rng(9).standard_normal(r.tau.shape)), "", None),
        (lambda r: replace(r, tau=-r.tau), "", None),
        (with_second_at_rest, "joint_2 does not move; its friction and the inertias that only its motion", False),
        (lambda r: replace(r, tau=r.tau * [1.0, 0.0]), "joint_2 has no effort, or the same throughout; its", False),
        (with_other_clocks, "pauses, lost samples or jumps of the clock separate 3 motions", True),
        (lambda r: r[:200], "", None),
    ],
    ids=["noise", "sign", "one joint at rest", "one effort zero", "clock", "short"],
)
def test_bad_recordings(change: Callable[[Recording], Recording], note: str, second: bool | None) -> None:
    """Inertias are possible anyway, and a line reports the fault; ``second``: joint 2 is identified."""
    robot, _, source, _ = arm()
    found = fit(robot, change(source), options=QUICK)
    of_file = Dynamics(robot, order=0).inertial_parameters
    assert is_possible(np.where(found.parameters == of_file, 0.0, found.parameters))
    assert np.all(found.terms["viscous"] >= 0)
    assert not note or any(line.startswith(f"simulated: {note}") for line in found.notes)
    if second is not None:
        assert found.term_identifiable["viscous"].tolist() == [True, second]
    if second:
        assert np.all(found.training.after < 0.1)


def fit_of(**changes: Any) -> Fit:
    robot, _, source, _ = arm()
    return fit(robot, replace(source, **changes), options=QUICK)


def test_motions_of_all_lengths() -> None:
    """Filters leave a single sample of some."""
    robot, _, source, _ = arm()
    ends = 1000 + np.cumsum(np.arange(40, 80) + 10)
    lost = (np.arange(len(source)) - ends[:, np.newaxis]).clip(0, 10) % 10 > 0
    assert fit(robot, source[~lost.any(axis=0)], options=replace(QUICK, cutoff=None)).trials


test_what_is_refused = refusals(
    IdentificationError,
    (lambda r: fit_of(tau=0 * r.tau), "simulated: efforts are missing or the same throughout"),
    (lambda r: fit_of(tau=np.nan * r.tau), "simulated: efforts are missing or the same throughout"),
    (lambda r: fit_of(q=0 * r.q), "simulated: no joint moves"),
    (
        lambda r: fit(load_robot("sea_planar_2r"), r[np.arange(len(r)) % 40 > 9]),
        "simulated: nowhere are 40 samples without a gap of more than 0.08 s",
    ),
    (lambda r: fit_of(joint_names=("a", "b")), "simulated: has the joints a, b, the robot joint_1, joint_2"),
    (lambda r: fit_of(t=r.t[:60], q=r.q[:60], tau=r.tau[:60]), "efforts with motion are too few for 12 parameters"),
    (lambda r: Options(side="left"), "side must be one of joint, motor"),
    (lambda r: Options(terms=("stiction",)), "terms must be one of viscous, .*, is 'stiction'"),
    call=lambda call: call(arm()[2]),
)


def test_default_side() -> None:
    assert Options().for_robot(arm()[0]).side == "joint"
    rigid = Options().for_robot(with_springs(arm()[0], RIGID))
    assert rigid.side == "motor" and "rotor_inertia" in rigid.terms


def test_whiteness_and_correlation() -> None:
    draw = np.random.default_rng(6)
    white = draw.standard_normal((20000, 2))
    smooth = np.convolve(white[:, 0], np.ones(10) / 10, "same")[:, np.newaxis]
    assert np.all(whiteness([white]) > 0.7)
    assert whiteness([smooth])[0] < 0.6
    # The mean of ten has the correlations 1 - k/10: their sum is 10 times the sum for white noise.
    np.testing.assert_allclose(correlation_time([smooth]), 10, rtol=0.15)
    np.testing.assert_allclose(correlation_time([white]), 1, atol=0.2)
