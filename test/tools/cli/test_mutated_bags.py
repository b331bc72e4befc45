# SPDX-License-Identifier: Apache-2.0
"""Mutated bags through ``replay`` and ``report``: one line for each error, no traceback, in bounded time."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")

import bag_files
from bag_files import JOINT_STATE, SETPOINT, START, STORE, TRAJECTORY, file_of, write_bag
from rosbags.rosbag2 import CompressionMode
from urdf_arms import urdf_arm

from eom_dynamics import load_robot
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

pytestmark = pytest.mark.filterwarnings("error")  # they would also be lines on stderr

NAMES = load_robot("planar_2r").joint_names
T = np.arange(150) * 4e-3
STATES = np.array(paper_motion(2).derivatives(T))

COUNT = 8  # mutations of each storage; ``make fuzz`` has more, of single files (test/fuzz/targets/bag.py)

LONGEST = 10  # CPU time limit of a command, s


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return content with flipped bytes, cut off, with a zeroed or repeated block, or several of these."""
    for _ in range(rng.integers(1, 3)):
        start, end = sorted(rng.integers(len(content) + 1, size=2).tolist())
        end = min(end, start + 4096)
        flipped = bytearray(content)
        for place in rng.integers(len(content) + 1, size=10):
            flipped[place : place + 1] = rng.bytes(1)
        zeroed = content[:start] + bytes(end - start) + content[end:]
        content = (bytes(flipped), content[:start], zeroed, content[:end] + content[start:])[rng.integers(4)]
    return content


def contents():
    times = [START + round(t * 1e9) for t in T]
    states = [(t, bag_files.joint_state(t, NAMES, q, [1.0, 2.0])) for t, q in zip(times, STATES[0], strict=True)]
    plan = bag_files.trajectory(START, NAMES, [0.0, 0.3, 0.5], [[0, 0], [0.2, 0.1], [0, 0]])
    robot = STORE.types["std_msgs/msg/String"](data=urdf_arm(joints=NAMES))
    return {
        "/robot_description": ("std_msgs/msg/String", [(START, robot)]),
        "/setpoint": (SETPOINT, bag_files.setpoints(NAMES, STATES)),
        "/joint_states": (JOINT_STATE, states),
        "/plan": (TRAJECTORY, [(START, plan)]),
    }


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> dict[str, list[Path]]:
    """Bags with the same contents by storage, each compressed in every way."""
    folder = tmp_path_factory.mktemp("originals")
    modes = (CompressionMode.NONE, CompressionMode.MESSAGE, CompressionMode.STORAGE)
    made = {
        storage: [
            write_bag(folder / f"{storage}_{mode.name}", contents(), storage, compression=mode)
            for mode in modes
            if (storage, mode) != ("sqlite3", CompressionMode.STORAGE)
        ]
        for storage in ("mcap", "sqlite3")
    }
    made["mcap"].append(without_chunks(folder / "mcap_without_chunks"))
    return made


def without_chunks(path: Path) -> Path:
    """A bag of setpoints without checksums, so that damage reaches the messages."""
    path.mkdir()
    kind, messages = contents()["/setpoint"]
    data = [(time_of_recording, bytes(STORE.serialize_cdr(message, kind))) for time_of_recording, message in messages]
    definition = STORE.generate_msgdef(kind, ros_version=2)[0]
    options = {"use_chunking": False, "enable_crcs": False}
    bag_files.write_mcap(path / f"{path.name}_0.mcap", {"/setpoint": data}, kind, definition, **options)
    return path


@pytest.fixture
def check(capsys) -> Callable[..., None]:
    """Run a command; fail if it fails."""

    def check(*arguments: object) -> None:
        began = time.process_time()
        code = main([*map(str, arguments)])
        assert time.process_time() - began < LONGEST
        output = capsys.readouterr()
        assert code in (0, 1, 2) and (code == 0 or output.err)
        assert "Traceback" not in output.err + output.out and "internal error" not in output.err + output.out
        assert all(line.startswith(f"eom_dynamics {arguments[0]}: ") for line in output.err.splitlines()), output.err

    return check


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_mutated_files_are_read_or_refused(bags, storage: str, tmp_path: Path, check) -> None:
    topics = ([], ["--topic", "/joint_states", "--against", "effort"], ["--topic", "/plan"])
    for seed in range(COUNT):
        rng = np.random.default_rng(seed)
        bag = shutil.copytree(bags[storage][seed % len(bags[storage])], tmp_path / f"{seed}")
        metadata = bag / "metadata.yaml"
        file = metadata if metadata.exists() and not rng.integers(10) else file_of(bag)
        file.write_bytes(mutated(file.read_bytes(), rng))
        robot = [] if rng.integers(2) else ["--robot", "planar_2r"]
        check("replay", bag, "-o", tmp_path / "out", "--force", *topics[seed % len(topics)], *robot)
        check("report", bag, "-o", tmp_path / "page.html", "--force", *robot)
