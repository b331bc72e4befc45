# SPDX-License-Identifier: Apache-2.0
"""Runs of the closed circle and of the command lead over ROS 2: node, player and simulated robot."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eom_dynamics import load_robot

MISSING = [
    name for name in ("rclpy", "eom_dynamics.msg", "rosbags", "plotly") if importlib.util.find_spec(name) is None
]
pytestmark = [pytest.mark.ros, pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")]


@pytest.fixture
def forked(monkeypatch) -> None:
    """Processes are forks of some that have imported their module."""
    from node_client import fork_server

    from eom_dynamics.tools import processes

    def start(command: list[str], *, cwd: Path, env: dict[str, str], stdout: Any, stderr: Any, **_: object) -> Any:
        _, _, module, *arguments = command
        return fork_server().start(module, arguments, cwd, stdout, stderr, environment=env)

    of_forks = SimpleNamespace(Popen=start, DEVNULL=None, TimeoutExpired=processes.subprocess.TimeoutExpired)
    monkeypatch.setattr(processes, "subprocess", of_forks)


@pytest.fixture(scope="module")
def task() -> Iterator[Any]:
    from closing_the_loop import experiment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "_JUDGED_PERIOD", 2.5)
        patch.setattr(experiment, "_CANDIDATES", 2)
        yield experiment.IdentificationTask(experiment.plan(load_robot("sea_planar_2r"), iterations=1), rate=100.0)


@pytest.mark.usefixtures("forked")
def test_lock_step_gives_what_the_simulation_alone_gives(task: Any, tmp_path: Path) -> None:
    from closing_the_loop.experiment import simulated
    from closing_the_loop.over_ros import over_ros
    from eom_dynamics.recordings.bags import Bag

    counts = []
    run = over_ros(task, tmp_path / "bags", lambda step, sent, received: counts.append((step, sent, received)))
    found = run("short", task.robot, task.plan.judged)
    alone = simulated(task)("short", task.robot, task.plan.judged)
    steps = len(task.times(task.plan.judged).setpoints)
    assert counts[-1] == ("short", steps, steps)
    with Bag(tmp_path / "bags" / "short") as bag:
        assert [topic.name for topic in bag.topics] == ["/feedforward", "/joint_states", "/motor_states", "/setpoint"]
        ((times, _), *_) = bag.messages(bag.topics[0])
    # Over ROS, the robot is ahead during its rest (/clock starts at 1 s), by the number of steps that it needs to
    # follow; 2 s later, 7e-5 rad remain of each. Noise is 1e-5 rad in both.
    ahead = round((times[0] * 1e-9 - 1.0) * task.rate) - 2
    for x, y in ((found.q, alone.q), (found.theta, alone.theta)):
        assert np.max(np.abs(x - y)[200:]) < 1e-4 * ahead
    assert np.all(np.median(np.abs(found.motor_effort - alone.motor_effort)[200:], axis=0) < 3 * task.noise.effort)


@pytest.mark.usefixtures("forked")
def test_the_lead_makes_the_recorded_error_ten_times_smaller(tmp_path: Path, capsys) -> None:
    from closing_the_loop.command_lead import main
    from eom_dynamics.recordings.bags import Bag
    from eom_dynamics.recordings.bags.layout import read_blocks
    from eom_dynamics.recordings.bags.types import COMMAND

    folder = tmp_path / "lead"
    assert main(["--robot", "planar_2r", "-o", str(folder), "--duration", "0.8"]) == 0
    assert "mrad without lead" in capsys.readouterr().out
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Link error without lead" in page and "are ahead by 2.5 ms" in page
    for run, lead in (("without_lead", 0.0), ("with_lead", 2.5e-3)):
        with Bag(folder / run) as bag:
            (topic,) = [topic for topic in bag.topics if topic.type == COMMAND]
            blocks = read_blocks(bag, topic, lambda reason, time: None)
            assert {lead} == {x for block in blocks for x in block.numbers("command_lead").ravel().tolist()}
