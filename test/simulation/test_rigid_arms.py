# SPDX-License-Identifier: Apache-2.0
"""Rigid arms: rotor inertia behind gears, free fall, efforts over time and tool wrenches, by textbook equations."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chains import packaged_parameters
from mujoco_arms import text
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.simulation import ElasticPlant, SimulationError, simulate
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.simulate.open_loop import read_efforts

G = 9.80665
LEG = eom.load_robot("leg")


def test_rotors_behind_gears_add_their_inertia_to_that_of_the_links() -> None:
    """n² I_m of De Luca, "Dynamics of an actuated pendulum"; elsewhere a rotor counts once, on the motor side."""
    robot = replace(LEG, joints=tuple(replace(joint, gear_ratio=50.0) for joint in LEG.joints))
    dynamics, links = (eom.Dynamics(robot, rotor_inertia=x, backend="numpy") for x in (True, False))
    q, qd, *rates = motion = np.random.default_rng(1).uniform(-2, 2, (5, 3))
    tau = dynamics.inverse_dynamics(*motion)
    np.testing.assert_allclose(np.subtract(tau, links.inverse_dynamics(*motion)), 0.02 * np.array(rates), atol=1e-13)
    np.testing.assert_allclose(dynamics.mass_matrix(q) - links.mass_matrix(q), 0.02 * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, tau[0]), rates[0], rtol=1e-11)
    energy = links.kinetic_energy(q, qd) + 0.01 * qd @ qd
    np.testing.assert_allclose(dynamics.kinetic_energy(q, qd), energy, rtol=1e-13)
    motor = eom.ElasticArm(dynamics.robot, backend="numpy").feedforward(*motion).motor_effort
    np.testing.assert_allclose(motor, tau[0], rtol=1e-12)


def test_rotors_of_elastic_joints_and_coupled_ones_are_not_added() -> None:
    assert not np.any(eom.load_robot("planar_2r").rigid_rotors) and np.all(LEG.rigid_rotors == 0.02)
    with pytest.raises(eom.RobotDescriptionError, match=r"rotor_inertia=True .* has the complete rotor model; take"):
        eom.Dynamics(replace(LEG, rotor_model="complete"), rotor_inertia=True)
    with pytest.raises(eom.StateError, match=r"rotor_inertia must be True or False, is 0\.02"):
        eom.Dynamics(LEG, rotor_inertia=0.02)  # type: ignore[arg-type]


def test_inspect_tells_where_rotors_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "leg"]) == 0
    assert "rotor inertia of rigid joints: all joints; part of motor efforts, not of" in capsys.readouterr().out
    assert main(["inspect", "planar_2r"]) == 0
    assert "rotor inertia of rigid joints" not in capsys.readouterr().out


def test_wrench_at_the_tip_of_an_elastic_arm_is_an_effort_on_its_links() -> None:
    """In both rotor models: M q̈ grows by -J' W, J of Lynch and Park, chapter 5; motors do not feel it at once."""
    for model in ("reduced", "complete"):
        plant = ElasticPlant(eom.ElasticArm(replace(eom.load_robot("planar_2r"), rotor_model=model)))
        state, effort = plant.state([0.3, 0.8], [1.0, -2.0]), np.zeros(2)
        W, s, c = np.array([0.0, 0.0, 0.2, 3.0, -1.0, 0.0]), np.sin(0.8), np.cos(0.8)
        J = np.array([[1.0, 1.0], [0.5 * s, 0.0], [0.5 * c + 0.4, 0.4]])
        change = plant.rate(state, effort, wrench=W) - plant.rate(state, effort)
        moved = plant.inertia.matrix(state[:2]) @ np.array([*change[4:6], *change[6:]])
        np.testing.assert_allclose(moved, [*(-J.T @ W[2:5]), 0.0, 0.0], atol=1e-12)


test_bad_wrenches = refusals(
    (TypeError, eom.StateError, SimulationError),
    (3, "wrench must be a function of time and state, or None for none, is 3"),
    (lambda *_: np.zeros(3), r"leg: wrench must return wrenches of shape \(6,\), returns \(3,\)"),
    (lambda *_: np.full(6, np.nan), "at 0 s: wrench returns wrenches that are not finite"),
    call=lambda wrench: simulate(
        ElasticPlant(eom.ElasticArm(LEG)),
        None,
        [0.0, 0.1],
        np.zeros(12),
        wrench=wrench,  # type: ignore[arg-type]
    ),
)


def _mjcf() -> str:
    """The leg in MuJoCo, from its file, with rotor inertias as armatures."""
    parameters = packaged_parameters("leg")
    bodies = ""
    for name in parameters["joint_names"]:
        joint = parameters["joints"][name]
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        bodies += (
            f'<body pos="{text(joint["origin"]["xyz"])}"><joint axis="{text(joint["screw"][:3])}" '
            f'armature="{joint["rotor_inertia"]}"/><inertial pos="{text(joint["center_of_mass"])}" '
            f'mass="{joint["mass"]}" fullinertia="{text([xx, yy, zz, xy, xz, yz])}"/>'
        )
    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false"/><option timestep="1e-3" integrator="RK4" '
        f'gravity="0 0 {-G}"/><worldbody>{bodies}{"</body>" * 3}</worldbody></mujoco>'
    )


def test_free_fall_of_a_leg_is_that_of_mujoco(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("plotly")
    start, rates = [0.1, 0.5, -1.0], [0.5, 0.0, 1.0]
    command = ["simulate", "leg", "--free", "--start", *map(str, start), "--velocity", *map(str, rates)]
    assert main([*command, "--duration", "0.4", "-o", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = mujoco.MjModel.from_xml_string(_mjcf())
    data = mujoco.MjData(model)
    data.qpos, data.qvel = start, rates
    for _ in range(400):
        mujoco.mj_step(model, data)
    # Of MuJoCo's Runge-Kutta method of order 4 at 1 ms.
    np.testing.assert_allclose([found["q"], found["qd"]], [data.qpos, data.qvel], atol=1e-8)
    assert found["energy_imbalance"] < 1e-11 and found["failures"] == []
    with np.load(tmp_path / "out" / "data.npz") as written:
        np.testing.assert_array_equal(written["q"][-1], found["q"])
        assert not np.any(written["motor_effort"]) and written["energy"].shape == (201, 5)
    assert "Motion of leg without efforts" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_efforts_of_a_motion_repeat_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Inverse dynamics into a file of each kind, forward dynamics by the command: the motion comes back."""
    pytest.importorskip("plotly")
    dynamics = eom.Dynamics(LEG, rotor_inertia=True)
    t = np.linspace(0.0, 0.05, 101)
    motion = [np.outer(f, [0.3, -0.5, 0.8]) for f in (np.sin(5 * t), 5 * np.cos(5 * t), -25 * np.sin(5 * t))]
    W = np.tile([0.0, 0.02, -0.03, 4.0, -1.0, 2.0], (len(t), 1))
    tau = dynamics.effort(*motion, wrench=(W,))
    names = ["knee", "hip", "abduction"]
    np.savez(tmp_path / "tau.npz", t=t, tau=tau[:, ::-1], joint_names=names, W=W)
    rows = {"t": t.tolist(), "tau": tau[:, ::-1].tolist(), "joint_names": names, "W": W.tolist()}
    (tmp_path / "tau.json").write_text(json.dumps(rows))
    table = np.column_stack([dynamics.effort(*motion)[:, ::-1], t])
    header = ",".join([*(f"tau.{name}" for name in names), "t"])
    np.savetxt(tmp_path / "tau.csv", table, "%.17g", ",", header=header, comments="")
    arm = eom.ElasticArm(LEG)
    for ending in (".npz", ".json", ".csv"):
        read = read_efforts(tmp_path / f"tau{ending}", arm)
        np.testing.assert_array_equal(read.t, t)
        if ending != ".csv":
            np.testing.assert_array_equal([read.tau, read.wrench[:, :3]], [tau, W[:, :3]])  # type: ignore[index]
    for ending in (".npz", ".csv"):
        command = ["simulate", "leg", "--efforts", str(tmp_path / f"tau{ending}"), "--json", "-o"]
        assert main([*command, str(tmp_path / ending), "--velocity", "1.5", "-2.5", "4"]) == 0
        # Efforts are linear between samples 0.5 ms apart.
        np.testing.assert_allclose(json.loads(capsys.readouterr().out)["q"], motion[0][-1], atol=1e-8)
        for written in ("data.npz", "motion.csv"):  # whose efforts are those of the motors, too
            again = read_efforts(tmp_path / ending / written, arm)
            np.testing.assert_array_equal(again.tau, read_efforts(tmp_path / f"tau{ending}", arm).tau)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of TRAJECTORY, --free and --efforts"),
        (["cosine", "--free"], "give one of TRAJECTORY, --free and --efforts"),
        (["--free", "--gains", "5"], "--gains, --rate, --exact and model errors go with TRAJ"),
        (["cosine", "--start", "0"], "--start and --velocity go with --free and --efforts"),
        (["--free", "--start", "0"], "--start takes 3 numbers, has 1: abduction, hip, knee"),
        (["--efforts", "{}/names.csv"], "has efforts of a, b; leg has abduction, hip, knee"),
        (["--free", "--velocity", "1e200", "0", "0"], "leg: the simulation cannot start: the motion leaves all bounds"),
        (["--efforts", "{}/twice.csv"], "twice.csv: cannot be read as efforts over time: has columns of the same"),
        (["--efforts", "{}/bare.csv"], "has efforts of no joint (columns tau.NAME); leg has abduction, hip, knee"),
        (["--efforts", "{}/no.json"], "no.json: cannot be read as efforts over time: has no 't'"),
        (["--efforts", "{}/more.json"], "has the unknown 'w', 'qd'; known are t, tau, joint_names, W"),
    ],
)
def test_refused(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names.csv").write_text("t,tau.a,tau.b\n0,1,2\n")
    (tmp_path / "twice.csv").write_text("t,tau.abduction,tau.abduction,tau.hip,tau.knee\n0,1,2,3,4\n")
    (tmp_path / "bare.csv").write_text("t,hip\n0,1\n")
    (tmp_path / "more.json").write_text('{"t": [0], "tau": [[0, 0, 0]], "w": [[0, 0, 0, 0, 0, 0]], "qd": []}')
    (tmp_path / "no.json").write_text('{"tau": [[0, 0, 0]]}')
    given = [each.format(tmp_path) for each in arguments]
    try:
        code: object = main(["simulate", "leg", *given, "-o", str(tmp_path / "out")])
    except SystemExit as error:
        code = error.code
    assert code == 2 and message in capsys.readouterr().err and not (tmp_path / "out").exists()
