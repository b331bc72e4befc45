# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics identify`` of springs, motors and the delay of drives: known truth, files, pages and errors."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_files import JOINT_STATE, START, STORE, header, joint_state, write_bag
from elastic_recordings import Recording, recording
from scipy.signal import StateSpace, chirp, lsim
from springs import with_springs
from urdf_arms import urdf_arm

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators.friction import FRICTIONLESS
from eom_dynamics.actuators.springs import RIGID, LinearSpring
from eom_dynamics.identification import Options, ResonanceFit
from eom_dynamics.identification import Recording as MotorRecording
from eom_dynamics.identification.elastic.delay import Delay, DriveDelay
from eom_dynamics.recordings import MotorSource, Source
from eom_dynamics.recordings.sides import TwoSidedRecording
from eom_dynamics.recordings.streams import Stream
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.tools.cli.identify import robot_file
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.identify import Request, run
from eom_dynamics.tools.identify.elastic import CommandTiming, ResonanceResult, command_timing
from eom_dynamics.tools.identify.summary import identification_result, identified_numbers
from eom_dynamics.trajectory import paper_motion


def record_resonance(link_inertia: float = 0.25) -> tuple[np.ndarray, ...]:
    """Times, motor position and effort of two masses with a spring between them, mass matrix and gravity stiffness."""
    K, B, J, D, t = 200.0, 0.05, link_inertia, 0.1, 2e-3 * np.arange(7000)
    effort = 2.0 * chirp(t, 0.5, 12, 30, method="logarithmic") * np.clip(np.minimum(t, 12 - t), 0, 1)
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-K / B, K / B, -D / B, 0], [K / J, -K / J, 0, 0]]
    theta = lsim(StateSpace(A, [[0], [0], [1 / B], [0]], [[1, 0, 0, 0]], [[0]]), effort, t)[1]
    return t, theta, effort, np.array([[J]]), np.zeros((1, 1))


ROBOT = load_robot("sea_planar_2r")
NAMES = ROBOT.joint_names
QUICK = ["--cutoff", "8"]

# Promised of recordings with noise.
STIFFNESS, ROTOR, FRICTION = 0.01, 0.02, 0.03
CURRENT = 5.0  # N m/A of both motors behind their gears


@pytest.fixture(scope="module")
def source() -> Recording:
    return recording(ROBOT, 18.0, rate=400.0).noisy(0)


@pytest.fixture(scope="module")
def described(tmp_path_factory) -> str:
    """A file that knows springs and masses wrong, and motors not at all."""
    wrong = perturbed(ROBOT, stiffness=0.2, mass=-0.2)
    joints = tuple(
        replace(x, rotor_inertia=0.5 * x.rotor_inertia, actuator=replace(x.actuator, friction=FRICTIONLESS))
        for x in wrong.joints
    )
    path = tmp_path_factory.mktemp("robot") / "described.yaml"
    path.write_text(robot_as_yaml(replace(wrong, joints=joints)).text)
    return str(path)


def columns(source: Recording) -> dict[str, np.ndarray]:
    return {
        **{"position": source.q, "effort": source.tau, "motor_position": source.theta},
        **{"motor_effort": source.motor_effort, "current": source.motor_effort / CURRENT},
    }


def write(path: Path, t: np.ndarray, values: Mapping[str, np.ndarray]) -> Path:
    np.savez(path, t=t, joint_names=NAMES, **values)
    return path


@pytest.fixture
def identify(run) -> Callable[..., Any]:
    def identify(path: Path, robot: str, output: Path, *others: str, code: int = 0) -> Any:
        return run("identify", path, "--robot", robot, "-o", output, *QUICK, "--verbose", *others, code=code)

    return identify


def check(found: dict[str, Any], truth: Robot = ROBOT, *, skip: tuple[str, ...] = ()) -> None:
    """Compare the numbers in JSON with the true robot, within promised errors and within five deviations."""
    for joint in truth.joints:
        spring, motor = (found["elastic"]["joints"][joint.name][part] for part in ("spring", "motor"))
        friction = joint.actuator.friction
        pairs = {
            "stiffness": (spring, float(joint.spring.tangent(np.zeros(1))[0]), STIFFNESS),
            "rotor_inertia": (motor, joint.rotor_inertia, ROTOR),
            "viscous": (motor, friction.viscous, FRICTION),
            "coulomb": (motor, friction.coulomb, FRICTION),
            "torque_constant": (motor, CURRENT / joint.gear_ratio, 0.01),
        }
        for name, (part, true, share) in pairs.items():
            if name not in skip:
                value, deviation = part[name]["value"], part[name]["deviation"]
                assert value == pytest.approx(true, rel=share), (joint.name, name)
                # The fit of springs and motors counts the noise, not the filtered part of dry friction.
                assert abs(value - true) < 5 * deviation, (joint.name, name)


def test_both_sides(source: Recording, described: str, tmp_path: Path, identify) -> None:
    path, output = write(tmp_path / "run.npz", source.t, columns(source)), tmp_path / "arm.yaml"
    page = tmp_path / "page.html"
    out, err = identify(path, described, output, "--hold-out", "0.3", "--page", str(page), "--json")
    found = json.loads(out)
    check(found)
    results = found["elastic"]
    # All figures are of held-out data; the file does not predict them.
    for side in ("springs", "motors"):
        figures = results["validation"][side]
        assert np.all(np.less(figures["rms_after"], np.multiply(0.2, figures["rms_before"])))
        assert np.all(np.less(figures["relative_after"], 0.02))
    assert "note: joint_1, motor: torque_constant: only k_t N is measured" in err
    # The file has every number with its deviation, and loads.
    text = output.read_text()
    assert re.search(r"# joint_2 +spring +stiffness +N m/rad +\S+ +300 ± 0\.", text)
    assert re.search(r"# joint_1 +motor +rotor inertia +kg m² +\S+ +0\.20", text)
    robot = load_robot(output)
    for joint, true in zip(robot.joints, ROBOT.joints, strict=True):
        assert joint.rotor_inertia == results["joints"][joint.name]["motor"]["rotor_inertia"]["value"]
        assert joint.spring.kind == true.spring.kind
        assert joint.actuator.gear.efficiency == pytest.approx(0.9, abs=2e-3)
        assert joint.actuator.motor.torque_constant == pytest.approx(0.05, rel=0.01)
    # Its relative uncertainty is the numbers' uncertainty, and for efforts, the residual of the validation.
    deviations = [results["joints"][name]["motor"]["rotor_inertia"] for name in NAMES]
    assert robot.uncertainty.rotor_inertia == pytest.approx(
        np.sqrt(np.mean([(x["deviation"] / x["value"]) ** 2 for x in deviations])), rel=1e-3
    )
    assert 0 < robot.uncertainty.stiffness < STIFFNESS and 0 < robot.uncertainty.mass < 0.02
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 30, 2))
    ours, true_efforts = (Dynamics(r).effort(q, qd, qdd) for r in (robot, ROBOT))
    assert np.sqrt(np.mean((ours - true_efforts) ** 2)) < 0.01 * np.std(true_efforts)
    html = page.read_text()
    for piece in ("Springs and motors", '"spring_0"', '"motor_friction_1"', "torque constant", "joint_2: spring"):
        assert piece in html
    assert "Friction over velocity" not in html  # the links have no friction: it is motor friction
    assert " notes</summary>" in html


def test_springs_of_the_file_that_recordings_confirm_stay(source: Recording, tmp_path: Path, identify) -> None:
    """Numbers found by chance would replace them, with large errors of insensitive parameters."""
    robot, output = tmp_path / "true.yaml", tmp_path / "arm.yaml"
    robot.write_text(robot_as_yaml(ROBOT).text)
    identify(write(tmp_path / "run.npz", source.t, columns(source)), str(robot), output)
    springs = [[x for x in path.read_text().splitlines() if "elasticity:" in x] for path in (output, robot)]
    assert springs[0] == springs[1]


def test_terms_are_switched(source: Recording, described: str, tmp_path: Path, identify) -> None:
    path, output = write(tmp_path / "run.npz", source.t, columns(source)), tmp_path / "arm.yaml"
    options = ["--spring-law", "table", "--spring-law", "joint_2=keep", "--motor-terms", "viscous,coulomb,efficiency"]
    out = identify(path, described, output, *options).out
    assert "effort at" in out and "rotor inertia" not in out
    robot, before = load_robot(output), load_robot(described)
    assert robot.joints[0].spring.kind == "tabulated" and len(robot.joints[0].spring.delta) == 9  # mirrored in use
    # The curve equals the true spring, if it was loaded.
    delta = np.linspace(0.02, 0.04, 4)
    true = ROBOT.joints[0].spring.load(delta, np.zeros(4))
    np.testing.assert_allclose(robot.joints[0].spring.load(delta, np.zeros(4)), true, rtol=0.02)
    assert robot.joints[1].spring.constant == before.joints[1].spring.constant
    assert [joint.rotor_inertia for joint in robot.joints] == [joint.rotor_inertia for joint in before.joints]


def test_bag_of_both_sides_without_a_sensor_of_effort(source: Recording, described: str, tmp_path: Path, identify):
    """Motors on a topic of their own that starts later, their efforts and currents on two others."""
    late = slice(200, None)
    topics = {
        "/joint_states": states(source, slice(None), source.q),
        "/motor_states": states(source, late, source.theta),
        "/drives": states(source, late, source.theta, source.motor_effort),
        "/currents": states(source, late, source.theta, source.motor_effort / CURRENT),
    }
    bag = write_bag(tmp_path / "bag", topics)
    options = ["--motor-effort-topic", "drives", "--current-topic", "/currents", "--topic", "joint_states", "--json"]
    out, err = identify(bag, described, tmp_path / "arm.yaml", *options)
    found = json.loads(out)
    check(found)
    assert "efforts of the links were not recorded; those of the identified springs are used" in err
    assert "damping: the effort of the spring was not recorded" in err
    assert found["training"]["rms_after"][0] < 0.2 * found["training"]["rms_before"][0]


@pytest.mark.parametrize(("unit", "positions", "efforts"), [("deg", 180 / np.pi, 1.0), ("shaft", 100.0, 0.01)])
def test_units_of_motors(
    unit: str, positions: float, efforts: float, source: Recording, described: str, tmp_path: Path, identify
) -> None:
    values = columns(source)
    values |= {"motor_position": positions * source.theta, "motor_effort": efforts * source.motor_effort}
    path = write(tmp_path / "run.npz", source.t, values)
    out, err = identify(path, described, tmp_path / "arm.yaml", "--json")
    check(json.loads(out))
    assert f"motor positions are {'in degrees' if unit == 'deg' else 'positions of the shafts'}" in err
    err = identify(path, described, tmp_path / "b.yaml", "--motor-unit", "rad", code=2).err
    assert "times as far as the link, gear ratio 100; check signs, or name the unit" in err


def test_resonance(tmp_path: Path, identify, run) -> None:
    """A motor of 0.05 kg m² with a friction of 0.1 N m s/rad; a link without gravity on a spring of 200 N m/rad."""
    robot = replace(with_springs(load_robot("pendulum"), LinearSpring(300.0)), gravity=np.zeros(3))
    inertia = float(Dynamics(robot).mass_matrix(np.zeros(1))[0, 0])
    t, *recorded = (np.asarray(x)[..., np.newaxis] for x in record_resonance(inertia)[:3])
    rng = np.random.default_rng(0)
    theta, effort = (
        x + share * np.ptp(x) * rng.normal(size=x.shape) for x, share in zip(recorded, (1e-6, 5e-3), strict=True)
    )
    path, output, page = tmp_path / "motors.npz", tmp_path / "arm.yaml", tmp_path / "page.html"
    np.savez(path, t=t.ravel(), joint_names=robot.joint_names, motor_position=theta, motor_effort=effort)
    described = tmp_path / "described.yaml"
    described.write_text(robot_as_yaml(robot).text)
    options = ["--motor-terms", "rotor_inertia,viscous", "--page", str(page)]
    unvalidated = identify(path, str(described), tmp_path / "not_validated.yaml", *options[:2], code=1).err
    assert "failed: not validated: a resonance " in unvalidated
    out, err = run("identify", path, "--robot", described, "-o", tmp_path / "few.yaml", *QUICK, *options[:2], code=1)
    assert len([*out.splitlines(), *err.splitlines()]) <= 9 and re.search("^hinge: .*stiffness", out, re.MULTILINE)
    out = identify(path, str(described), output, *options, "--hold-out", "0").out
    assert "springs and motors from the resonance of the motor side; link positions were not measured" in out
    assert "inertias of the links stay as in the file" in out
    (joint,) = load_robot(output).joints
    assert joint.spring.constant == pytest.approx(200.0, rel=STIFFNESS)
    assert joint.rotor_inertia == pytest.approx(0.05, rel=ROTOR)
    assert joint.actuator.friction.viscous == pytest.approx(0.1, rel=0.1)
    assert "# springs and motors from the resonance of the motor side" in output.read_text()
    assert '"response_0"' in page.read_text()
    for option in (["--hold-out", "0.3"], ["--tolerance", "1"]):
        assert (
            f"{option[0]}: links were not recorded, "
            in identify(path, str(described), tmp_path / "b.yaml", *option, code=2).err
        )


Change = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


def test_figures_of_a_stiffness_that_is_not_identifiable_are_not_shown() -> None:
    one = np.array([[1.0, 0.1], [1.0, 0.1]])
    stiffness, band = np.array([[480.0, 2.0], [8.1e5, 3.9e5]]), (0.4, 25.0)
    fit = ResonanceFit(stiffness, one, one, one, one, None, np.array([5.0, 88.0]), np.array([9.0, 99.0]), band, 1.0, ())
    motors = MotorRecording(ROBOT.joint_names, np.arange(2.0), np.zeros((2, 2)), np.zeros((2, 2)), None, "motors")
    shown = identified_numbers(ResonanceResult(ROBOT, fit, motors, ()))
    assert {x.name for x in shown if x.joint == "joint_1"} >= {"stiffness", "rotor inertia", "viscous", "resonance"}
    assert not [x for x in shown if x.joint == "joint_2"]


def without(*names: str) -> Change:
    return lambda values: {name: x for name, x in values.items() if name not in names}


def scaled(name: str, factor: float) -> Change:
    return lambda values: values | {name: factor * values[name]}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (without("motor_position"), [], "has columns current and motor_effort.NAME, but no motor_position.NAME"),
        (without("motor_position", "motor_effort", "current"), ["--springs", "both"], "has no motor positions; record"),
        (without("motor_effort", "current"), [], "joint_1: the effort of the motor is missing or zero throughout"),
        (without("position", "effort"), [], "does not explain it, misfit "),
        (scaled("motor_position", -1), [], "the motor of joint_1 moves -0.98"),
        (scaled("motor_position", 7), [], "gear ratio 100; check signs, or name the unit"),
        (without("effort"), ["--spring-law", "table"], "without it, only linear and cubic springs can be identified"),
        (dict, ["--springs", "both", "--side", "motor"], "cannot be combined with --side motor or --payload"),
    ],
)
def test_bad_recordings(change: Change, options: list[str], message: str, source: Recording, tmp_path: Path, identify):
    short = Recording(*(x[:1600] for x in source))
    path = write(tmp_path / "run.npz", short.t, change(columns(short)))
    springs = [] if "--springs" in options else ["--springs", "auto"]
    (line,) = identify(path, "sea_planar_2r", tmp_path / "arm.yaml", *springs, *options, code=2).err.splitlines()
    assert message in line
    assert not (tmp_path / "arm.yaml").exists()


def test_springs_stay_where_efforts_are_in_another_unit(source: Recording, described: str, tmp_path: Path, identify):
    path = write(tmp_path / "run.npz", source.t, columns(source) | {"effort": source.tau * (1.0, 100.0)})
    printed = identify(path, described, tmp_path / "arm.yaml", "--springs", "both", code=1)
    assert "another unit" in printed.err and "springs and motors are those of the file" in printed.out
    assert not (tmp_path / "arm.yaml").exists()


def test_motors_that_do_not_explain_their_efforts_stay_as_in_the_file(
    source: Recording, described: str, tmp_path: Path, identify
) -> None:
    factors = (-100.0, 1.0)
    values = without("current")(columns(source)) | {"motor_effort": source.motor_effort * factors}
    output, page = tmp_path / "arm.yaml", tmp_path / "page.html"
    run = write(tmp_path / "run.npz", source.t, values)
    out, err = identify(run, described, output, "--page", str(page), "--json")
    results, robot, given = json.loads(out)["elastic"], load_robot(output), load_robot(described)
    for k, (joint, before, true) in enumerate(zip(robot.joints, given.joints, ROBOT.joints, strict=True)):
        assert joint.spring.rest_stiffness == pytest.approx(true.spring.rest_stiffness, rel=STIFFNESS)
        assert results["training"]["springs"]["relative_after"][k] < 0.02
        assert f'"spring_{k}"' in page.read_text()
        if factors[k] == 1:
            assert joint.rotor_inertia == pytest.approx(true.rotor_inertia, rel=ROTOR)
            continue
        assert (joint.rotor_inertia, repr(joint.actuator)) == (before.rotor_inertia, repr(before.actuator))
        assert re.search(rf"note: {joint.name}: the motor stays as in the file: residuals are \d+% .*signs, unit", err)


def states(
    source: Recording, rows: slice, q: np.ndarray, effort: np.ndarray | None = None, shift: float = 0.0
) -> tuple[str, list[tuple[int, object]]]:
    """Some rows of a recording as joint states, some time later."""
    stamps = [START + round(1e9 * (t + shift)) for t in source.t[rows]]
    efforts = [()] * len(stamps) if effort is None else effort[rows]
    return JOINT_STATE, [(s, joint_state(s, NAMES, *x)) for s, *x in zip(stamps, q[rows], efforts, strict=True)]


def bag(path: Path, source: Recording, links: slice, motors: slice, shift: float = 0.0) -> Path:
    of_motors = states(source, motors, source.theta, source.motor_effort, shift)
    return write_bag(path, {"/joint_states": states(source, links, source.q, source.tau), "/motor_states": of_motors})


def test_replay_compares_motor_efforts_with_motor_states(source: Recording, tmp_path: Path, run) -> None:
    robot = tmp_path / "true.yaml"
    robot.write_text(robot_as_yaml(ROBOT).text)
    recorded = bag(tmp_path / "bag", source, slice(None), slice(100, None))
    command = ["replay", recorded, "--robot", robot, "--topic", "joint_states", "--json", "-o", tmp_path / "out"]
    (found,) = run(*command, "--against", "motor_effort").json
    assert np.all(np.less(found["report"]["rms"], 0.1 * np.std(source.motor_effort - source.tau, axis=0)))


def test_motors_of_another_time(source: Recording, tmp_path: Path, identify) -> None:
    path = bag(tmp_path / "short", source, slice(0, 6000), slice(0, 4000))
    notes = identify(path, "sea_planar_2r", tmp_path / "a.yaml", "--hold-out", "0").out
    assert "short: of 15.0 s of the links, 10.0 s have both sides of the springs" in notes
    path = bag(tmp_path / "late", source, slice(0, 1000), slice(0, 1000), shift=100.0)
    (line,) = identify(path, "sea_planar_2r", tmp_path / "b.yaml", code=2).err.splitlines()
    assert "late: links and motors were not recorded at the same time: 0 to 2.4975 s, 100 to 102.498 s" in line


def test_springs_off_and_links_alone(source: Recording, tmp_path: Path, identify) -> None:
    source = Recording(*(x[:2400] for x in source))
    path = write(tmp_path / "run.npz", source.t, columns(source))
    alone = ("--springs", "off", "--hold-out", "0", "--json")
    assert identify(path, "sea_planar_2r", tmp_path / "a.yaml", *alone).json["elastic"] is None
    links = without("motor_position", "motor_effort", "current")(columns(source))
    path = write(tmp_path / "links.npz", source.t, links)
    out = identify(path, "sea_planar_2r", tmp_path / "b.yaml", "--hold-out", "0").out
    assert "note: motors were not recorded; springs, rotors and motor friction stay as" in out


def test_link_encoders_on_a_part_of_the_joints(source: Recording, described: str, tmp_path: Path, identify) -> None:
    values = {name: x for name, x in columns(source).items() if name not in ("position", "effort", "current")}
    header = ["t", *(f"{name}.{joint}" for name in values for joint in NAMES)]
    header += [f"position.{NAMES[0]}", f"effort.{NAMES[0]}"]
    rows = np.column_stack([source.t, *values.values(), source.q[:, 0], source.tau[:, 0]])
    path, output = tmp_path / "part.csv", tmp_path / "found.yaml"
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")
    notes = identify(path, described, output, "--hold-out", "0").out
    found, given = load_robot(str(output)), load_robot(described)
    known, kept = found.joints[0].spring, found.joints[1].spring
    assert known.rest_stiffness == pytest.approx(ROBOT.joints[0].spring.rest_stiffness, rel=STIFFNESS)
    assert kept.rest_stiffness == given.joints[1].spring.rest_stiffness
    assert f"positions of {NAMES[1]} were not recorded; those of their motors are used" in notes


COMMAND = "eom_dynamics/msg/FeedforwardCommand"
PERIOD = 2e-3
QUICK_TIMING = [*QUICK, "--terms", "none"]
NO_ARRAYS = ("effort", "effort_rate", "effort_acceleration", "motor_acceleration")


def recorded(path: Path, arm: ElasticArm, delay: float, *, motors: bool = True, seconds: float = 5.0) -> Path:
    """A bag of a simulated robot that follows commands of its motors, with noise of its sensors."""
    motion, t = paper_motion(arm.robot.n), PERIOD * np.arange(round(seconds / PERIOD))
    noise = SensorNoise(1e-5, 1e-3, 0.005)
    start = motion.derivatives(0.0, 0)[0]
    drives = SimulatedDrives(drive_delay=delay)
    robot = SimulatedRobot(arm, period=PERIOD, position=start, drives=drives, noise=noise, seed=1)
    y, names = arm.feedforward(*motion.derivatives(t)), list(arm.robot.joint_names)
    rows: dict[str, list[tuple[int, Any]]] = {"links": [], "motors": [], "commands": []}
    for k, wanted in enumerate(zip(y.motor_position, y.motor_velocity, y.motor_effort, strict=True)):
        now, time = robot.readings(), START + round(1e9 * k * PERIOD)
        rows["links"].append((time, joint_state(time, names, now.q, now.tau if motors else now.motor_effort)))
        rows["motors"].append((time, joint_state(time, names, now.theta, now.motor_effort)))
        fields = dict(zip(("motor_position", "motor_velocity", "motor_effort"), wanted, strict=True))
        fields |= {name: np.zeros(0) for name in NO_ARRAYS}
        about = {
            "status": 0,
            "held": False,
            "command_lead": 0.0,
            "motor_names": names,
            "drive_side": np.zeros(0, np.uint8),
        }
        message = STORE.types[COMMAND](header=header(time), joint_names=names, **about, **fields)
        rows["commands"].append((time, message))
        robot.follow(*wanted)
        robot.advance()
    topics = {"/joint_states": (JOINT_STATE, rows["links"]), "/feedforward": (COMMAND, rows["commands"])}
    if motors:
        topics["/motor_states"] = (JOINT_STATE, rows["motors"])
    return write_bag(path, topics)


@pytest.mark.parametrize("kind", ["springs", "rigid"])
def test_delay_and_period_are_written(kind: str, tmp_path: Path, capsys) -> None:
    robot = load_robot("planar_2r")
    if kind == "rigid":
        robot = replace(robot, joints=tuple(replace(x, spring=RIGID) for x in robot.joints))
    described = tmp_path / "arm.yaml"
    described.write_text(robot_as_yaml(robot).text)
    bag = recorded(tmp_path / "bag", ElasticArm(robot), 4e-3, motors=kind == "springs")
    output = tmp_path / "found.yaml"
    command = ["identify", bag, "--robot", described, "-o", output, *QUICK_TIMING, "--force", "--verbose"]

    def identify(*options: str) -> Any:
        main([*map(str, command), *options])
        return capsys.readouterr()

    late = "--motor-delay" if kind == "springs" else "--effort-delay"
    timing = json.loads(identify(late, "0.001", "--json").out)["timing"]
    assert timing["delay"]["value"] == pytest.approx(4e-3 + PERIOD / 2, abs=1e-4)
    assert timing["delay"]["standard_deviation"] < 5e-5
    found = load_robot(output)
    assert found.command_period == PERIOD and found.drive_delay == pytest.approx(4e-3, abs=1e-4)
    # Without the time of recorded efforts, only the period is known.
    printed = identify()
    assert "drive_delay is not written" in printed.out and "--motor-delay" in printed.out
    # Commands that drives hold for 2 ms, and one sample of effort in each.
    aliased = "failed: motor efforts alias: they come every 2 ms, commands, which drives hold, every 2 ms"
    assert (aliased in printed.err) == (kind == "springs")
    assert ("failed: no file is written: motor efforts alias" in printed.err) == (kind == "springs")
    assert load_robot(output).drive_delay == (found.drive_delay if kind == "springs" else 0.0)
    identify("--suspect", "use")
    found = load_robot(output)
    assert (found.command_period, found.drive_delay) == (PERIOD, 0.0)


def test_a_delay_that_cannot_be_found_is_told(tmp_path: Path, capsys) -> None:
    bag = recorded(tmp_path / "bag", ElasticArm(load_robot("planar_2r")), 0.0, motors=False, seconds=2.5)
    output = tmp_path / "found.yaml"
    main(["identify", str(bag), "--robot", "planar_2r", "-o", str(output), *QUICK_TIMING, "--verbose"])
    assert "the delay of its commands is not identified: positions of" in capsys.readouterr().out
    assert not output.exists()  # the arm is the given one


def test_an_uncertain_delay_is_not_written() -> None:
    """The period is; ages of a certain delay need a PD, and are written with it."""
    robot = replace(load_robot("planar_2r"), drive_delay=1e-3)
    certain, late = Delay(3e-3, 1e-5), Delay(2e-4, 1e-5)
    found = DriveDelay(certain, late, late, 0.0, 1.0)
    for changed, delay, age, line in (
        (found, 2e-3, 2e-4, "drives measure positions of an age of 0.200 ms"),
        (found._replace(noise=5.0), 2e-3, 0.0, "drive_feedback_delay is not written: efforts do not follow a PD law"),
        (found._replace(delay=Delay(3e-3, 1e-4)), 1e-3, 0.0, "drive_delay is not written: its deviation of 0.1 ms"),
    ):
        timing = CommandTiming(changed, Delay(2e-3, 0.0))
        written = timing.applied_to(robot)
        assert (written.command_period, written.drive_feedback_delay.position) == (2e-3, age)
        assert written.drive_delay == pytest.approx(delay) and any(line in text for text in timing.as_text())
    interpolating = CommandTiming(found, Delay(2e-3, 0.0), "linear")
    assert interpolating.drive_delay == pytest.approx(1e-3)
    assert "without 100 % of the period, is 1.000 ms" in interpolating.as_text()[0]


def test_worse_commands_and_shared_springs_need_action(source: Recording, described: str, tmp_path: Path) -> None:
    """The new file predicts links better, but its motor efforts worse, beyond 1 % of them."""
    path = write(tmp_path / "run.npz", source.t, columns(source))
    request = Request(training=(path,), link_options=Options(cutoff=8.0))
    found = run.identify(load_robot(described), request, lambda step, done: None)
    found = found.verified(found.robot)
    assert found.failures == () and found.commands is not None
    assert np.all(found.commands.after < 0.2 * found.commands.before)
    assert identification_result(found, {}).passed.startswith("RMS error of motor efforts on validation ")
    worse = replace(found.commands, after=1.1 * found.commands.before + 0.02 * found.commands.spread)
    lines = replace(found, commands=worse, shared=("shared",)).failures
    assert lines[0] == "shared" and len(lines) == 3
    assert lines[2].startswith("the new file predicts motor efforts of joint_2 to")


def test_what_a_urdf_cannot_hold_is_told(tmp_path: Path) -> None:
    source = tmp_path / "arm.urdf"
    source.write_text(urdf_arm())
    robot = replace(load_robot(source), command_period=1e-3)
    found = run.IdentificationResult(robot, robot, None, None, (), ())
    _, not_in_file = robot_file(tmp_path / "found.urdf", str(source), found)
    assert any("command_period and timing of the drives are omitted" in line for line in not_in_file)


def test_several_topics_of_commands_are_told() -> None:
    none = Stream("", *np.zeros((2, 0), dtype=np.int64), (), {})
    sides = TwoSidedRecording(None, commands=dict.fromkeys(("/left/feedforward", "/right/feedforward"), none))
    timing, notes = command_timing(load_robot("planar_2r"), [sides], Source(), MotorSource())
    assert timing is None and "it has 2 topics of them, /left/feedforward, /right/feedforward" in notes[0]
