# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics learn``: from bags of runs to the motion of the next."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bag_files import JOINT_STATE, SETPOINT, START, joint_state, setpoint, write_bag
from urdf_arms import urdf_arm

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.learning import read_correction, uncorrected
from eom_dynamics.states import STATE_NAMES

NAMES = load_robot("planar_2r").joint_names
T = 1e-3 * np.arange(801)
SURE = ("--stiffness-error", "0.05", "--mass-error", "0.05", "--rotor-inertia-error", "0.05")
SHAPE = np.sin(np.pi * T / 0.8) ** 6


def motion_file(folder: Path) -> Path:
    w = 2 * np.pi / 0.8
    rows = []
    for k in range(5):
        terms = ((10, 0), (-15, 1), (6, 2), (-1, 3))
        rows.append(sum(c / 32 * (m * w) ** k * np.cos(m * w * T + k * np.pi / 2) for c, m in terms))
    states = np.array(rows)[..., np.newaxis] * np.array([0.3, -0.2])
    uncorrected(NAMES, T, states).write(folder / "motion.npz")
    return folder / "motion.npz"


def run_of(
    folder: Path,
    name: str,
    motion: Path,
    off: float,
    *,
    effort: Sequence[float] = (),
    jitter: int = 0,
    stride: int = 1,
    probes: int = 0,
    last: int = 800,
    recorded_to: float = 0.83,
    stamped_late: Array | int = 0,
) -> Path:
    """A bag of a run that is off by some times the shape of the motion; joint states at 500 Hz, late by 0.4 ms.

    Headers of joint states are stamped later by some ns.
    """
    given = read_correction(motion)
    late = np.random.default_rng(0).integers(0, jitter + 1, len(T))
    late[0] = 0
    stamps = {k: START + 10**6 * k + int(late[k]) for k in range(0, last + 1, stride)}
    commanded = [(START - 1, setpoint(-k, NAMES, given.motion[:, 0])) for k in range(1, probes + 1)]
    commanded += [(at, setpoint(at, NAMES, given.motion[:, k])) for k, at in stamps.items()]
    at = np.arange(-0.01, recorded_to, 0.002) + 4e-4
    shape = np.interp(at, T, SHAPE)
    q = np.stack([np.interp(at, T, given.reference[0][:, i]) for i in range(2)], axis=1) + off * shape[:, np.newaxis]
    recorded = START + np.round(at * 1e9).astype(np.int64)
    stamped = recorded + stamped_late
    measured = [
        (int(t), joint_state(int(stamp), NAMES, row, effort))
        for t, stamp, row in zip(recorded, stamped, q, strict=True)
    ]
    return write_bag(folder / name, {"/setpoint": (SETPOINT, commanded), "/joint_states": (JOINT_STATE, measured)})


def test_runs_are_learned_one_after_the_other(tmp_path: Path, run) -> None:
    motion = motion_file(tmp_path)
    first = run_of(tmp_path, "first", motion, 2e-3)
    command = ["learn", "--robot", "planar_2r", "--gain", "1", "--bandwidth", "5", "--json", *SURE]
    answer = run(*command, first, "--motion", motion, "-o", tmp_path / "second.npz").json
    rms = 2e-3 * np.sqrt(np.mean(SHAPE**2))
    assert answer["errors"] == pytest.approx([rms], rel=1e-2) and answer["contraction"]["ratio"] < 1
    second = read_correction(tmp_path / "second.npz")
    np.testing.assert_allclose(second.correction[0], np.repeat(-2e-3 * SHAPE[:, None], 2, axis=1), atol=1e-4)
    # Two repetitions of the next run, and then one that is worse.
    bags = [run_of(tmp_path, f"again_{k}", tmp_path / "second.npz", off) for k, off in enumerate((3e-4, -1e-4))]
    arguments = [*bags, "--motion", tmp_path / "second.npz", "-o", tmp_path / "third.npz"]
    assert run(*command, *arguments).json["errors"][1] == pytest.approx(rms / 20, rel=0.05)
    worse = run_of(tmp_path, "worse", tmp_path / "third.npz", 1e-3)
    arguments = [worse, "--motion", tmp_path / "third.npz", "-o", tmp_path / "fourth.npz"]
    assert "refused: the error has grown from 4." in run(*command, *arguments, code=1).err
    assert not (tmp_path / "fourth.npz").exists()


@pytest.fixture
def motion(tmp_path: Path) -> Path:
    return motion_file(tmp_path)


@pytest.fixture
def learn(tmp_path: Path, motion: Path, run):
    command = ["learn", "--robot", "planar_2r", "--bandwidth", "5", *SURE, "--force", "-o", tmp_path / "next.npz"]
    return lambda *arguments, code=0: run(*command, "--motion", motion, *arguments, code=code)


def test_what_repeats_is_told(tmp_path: Path, motion: Path, learn) -> None:
    offsets = {"one": 1e-3, "two": 1.1e-3, "back": -1e-3}
    bags = {name: run_of(tmp_path, name, motion, off) for name, off in offsets.items()}
    lines = [x for x in learn(bags["one"], bags["two"]).out.splitlines() if x.startswith("joint_")]
    assert len(lines) == 2 and all(" % of the error repeats; of this " in line for line in lines)
    # An error in proportion to the position is one of the model; the bags have no efforts.
    assert any(": eom_dynamics identify finds them in runs recorded with efforts" in line for line in lines)
    shares = learn(bags["one"], bags["back"], "--json").json["shares"]
    assert [x["joint"] for x in shares] == list(NAMES) and not any(x["repeats"] for x in shares)
    assert "joint_1: no part of the error repeats beyond its noise" in learn(bags["one"], bags["back"]).out
    one, two = (run_of(tmp_path, f"{name}_effort", motion, offsets[name], effort=[1, 2]) for name in ("one", "two"))
    advice = f"run eom_dynamics identify {one} {two} --robot planar_2r -o identified.yaml"
    assert f": {advice}" in learn(one, two).out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"t": T, "q": np.array([{}])}, "has an array of Python objects; write it as numbers"),
        ({"t": T}, "has no q, qd, qdd, qddd, qdddd; name a motion or a correction"),
        ({"t": T[::-1], **dict.fromkeys(STATE_NAMES, T)}, "t must increase in equal steps"),
    ],
    ids=["objects", "no states", "backwards"],
)
def test_files_without_a_motion_are_refused_on_one_line(content, reason: str, tmp_path: Path, motion, learn) -> None:
    np.savez(motion, joint_names=NAMES, **content)
    (line,) = learn(tmp_path / "bag", code=2).err.splitlines()
    assert f"{motion}: {reason}" in line


def test_setpoints_of_another_motion_are_refused(tmp_path: Path, motion: Path, learn) -> None:
    other = tmp_path / "other.npz"
    # A correction of 20 µrad at most.
    uncorrected(NAMES, T, read_correction(motion).reference * (1 + 1e-4 * np.array([0.0, 1.0]))).write(other)
    own, mixed = run_of(tmp_path, "own", motion, 1e-3), run_of(tmp_path, "mixed", other, 1e-3)
    assert learn(own, mixed, code=2).err.endswith(
        "mixed: plays another motion: largest difference 2e-05 rad of joint_2 at 0.4 s; name the file that this run "
        "was commanded with\n"
    )
    # Stamps that jitter by up to a sample and every second setpoint, after a player's probes, are of the motion.
    learn(run_of(tmp_path, "late", motion, 1e-3, jitter=900_000, stride=2, probes=3))
    for name, part, reason in (
        ("short", {"last": 700}, "setpoints span 0.7 s of the motion, which takes 0.8 s; record the whole run"),
        ("cut_off", {"recorded_to": 0.5}, "to 0.498 s of the motion, which takes 0.8 s; record the whole run"),
    ):
        assert reason in learn(run_of(tmp_path, name, motion, 1e-3, **part), code=2).err


def test_joint_states_in_another_order_are_sorted(tmp_path: Path, motion: Path, learn) -> None:
    late = np.zeros(420, dtype=np.int64)
    late[100], late[200] = 7 * 10**6, 2 * 10**6
    bag = run_of(tmp_path, "mixed", motion, 1e-3, stamped_late=late)
    assert [line for line in learn(bag).out.splitlines() if line.startswith("note: ")] == [
        f"note: {bag}: 4 samples are not in the order of their times; sorted",
        f"note: {bag}: 1 samples have the time of another, and are left out",
    ]
    late[200:] = -(10**8)
    bag = run_of(tmp_path, "set_back", motion, 1e-3, stamped_late=late)
    error = learn(bag, code=2).err
    assert f"{bag}: the clock was set back while positions were recorded; record the run again" in error


def test_what_cannot_be_used_is_one_line_and_2(tmp_path: Path, motion: Path, learn) -> None:
    bag = run_of(tmp_path, "run", motion, 1e-3)
    error = learn(bag, "--robot", "sea_planar_2r", "--stiffness-error", "0.9", code=1).err
    assert "refused: learning may diverge" in error
    (tmp_path / "arm.urdf").write_text(urdf_arm(joints=NAMES))
    rows = [(START, joint_state(START, NAMES, [0, 0]))]
    states = write_bag(tmp_path / "states", {"/joint_states": (JOINT_STATE, rows)})
    others = [(START, joint_state(START, ["a", "b"], [0, 0]))], [(START, setpoint(START, ["a", "b"], np.zeros((5, 2))))]
    topics = {"/joint_states": (JOINT_STATE, others[0]), "/setpoint": (SETPOINT, others[1])}
    other = write_bag(tmp_path / "other", topics)
    rotor = "joint_1, joint_2: rotor inertia is 0, but learning takes the gains of the motor's PD from it; write "
    for arguments, reason in (
        ((bag, "--robot", "iiwa"), "has the joints joint_1, joint_2"),
        ((bag, "--robot", tmp_path / "arm.urdf"), rotor),
        ((states,), "topics of type eom_dynamics/msg/JointTrajectorySetpoint"),
        ((other,), "topic /setpoint has no setpoints of joint_1, joint_2"),  # learn has no --rename
    ):
        (line,) = learn(*arguments, code=2).err.splitlines()
        assert reason in line
