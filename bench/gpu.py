# SPDX-License-Identifier: Apache-2.0
"""States a second on a GPU: the exported CUDA code beside libraries that run there.

    .venv/bin/python bench/gpu.py [ROBOT]

writes the figures to docs/dynamics.md, and needs an NVIDIA GPU and nvcc. The exported code first passes the test that
is exported with it. Other libraries are compared where they are installed:
pip install "frax[cuda12]" mujoco-mjx mujoco-warp
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from report import Section, Table, error, write_between_marks

from eom_dynamics import Dynamics, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.export import project, project_files
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.writers.urdf import robot_as_urdf

DOCUMENT = Path(__file__).parents[1] / "docs" / "dynamics.md"

# As many as the exported test has, or thereabouts.
_STATES = 1_000_000
_REPETITIONS = 20
_CHECKED = 1_000

# Of single precision, in which some libraries compute.
_SINGLE = 1e-3

Run = Callable[[], Any]


def main() -> int:
    """Build, test and time; returns 1 if there is no GPU, or a result is wrong."""
    parser = argparse.ArgumentParser(prog="gpu.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("robot", nargs="?", default="iiwa", help="a packaged robot or a file (default: iiwa)")
    robot = load_robot(parser.parse_args().robot)
    for program in ("nvcc", "nvidia-smi"):
        if not shutil.which(program):
            print(f"gpu.py: {program} is not installed: an NVIDIA GPU and the CUDA toolkit are needed", file=sys.stderr)
            return 1
    device = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).strip()
    section = Section("gpu", f"{robot.name} on {device}")
    table = Table(
        "states a second, data on the device", ("way", "gives", "precision", "million states a second", "error")
    )
    for function, gives in (
        ("feedforward", "motor effort"),
        ("inverse_dynamics", "tau, taud, taudd"),
        ("effort", "tau"),
    ):
        rate, worst = _exported(robot, function)
        table.add(f"exported CUDA: `{function}`", gives, "double", f"{1e-6 * rate:,.0f}", worst)
    states = [np.random.default_rng(k).uniform(-1, 1, (_STATES, robot.n)) for k in range(3)]
    wanted = Dynamics(robot).effort(*(x[:_CHECKED] for x in states))
    # Some libraries require an inertia of the base, although it does not move.
    base = Inertial.about_center(1.0, np.zeros(3), np.eye(3))
    urdf = robot_as_urdf(replace(robot, base=base)).text
    for package, (name, precision, make) in _PEERS.items():
        if not _is_installed(package):
            section.text.append(f"{name} is not installed, and therefore not compared.")
            continue
        try:
            run, results = make(robot, urdf, states)
        except ValueError as refused:  # MuJoCo checks inertias without a margin for rounded ones
            section.text.append(f"{name} refuses the robot: {str(refused).splitlines()[0]}.")
            continue
        run()
        off = float(np.max(np.abs(results()[:_CHECKED] - wanted)) / np.max(np.abs(wanted)))
        assert off < _SINGLE, f"{name} is off by {off}"
        table.add(name, "tau", precision, f"{1e-6 * _STATES / _seconds(run):,.0f}", error(off))
    section.tables = [table]
    section.show()
    source = f"`bench/gpu.py {robot.name}`, {datetime.now(timezone.utc).date().isoformat()}, on one {device}."
    write_between_marks(DOCUMENT, section.name, f"{section.markdown()}\n\n{source}")
    return 0


def _exported(robot: Robot, function: str) -> tuple[float, str]:
    """States a second of an exported function, and its largest error, by the test that is exported with it."""
    files, _ = project_files(project(robot, [function]), ["cuda"])
    with tempfile.TemporaryDirectory() as folder:
        for name, contents in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
        code = Path(folder) / "cuda"
        _output(["nvcc", "-O3", "-arch=native", *map(str, code.glob("*.cu")), "-o", str(code / "test")])
        report = _output([str(code / "test")])
    print(report)
    (rate,) = re.findall(rf"_{function} +([0-9.e+]+) states per second", report)
    return float(rate), max(re.findall(r"error +([0-9.e+-]+)", report), key=float)


def _frax(robot: Robot, urdf: str, states: list[Array]) -> tuple[Run, Callable[[], Array]]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", val=True)
    from frax import Robot as Model

    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(urdf)
        file.flush()
        model = Model(file.name)
    # Gravity as an acceleration of the base.
    gravity = jnp.concatenate([-jnp.asarray(robot.gravity), jnp.zeros(3)])
    efforts = jax.jit(jax.vmap(lambda q, qd, qdd: model.rnea(q, qd, qdd, gravity, None)))
    return _by_jax(efforts, [jnp.asarray(x) for x in states])


def _mjx(robot: Robot, urdf: str, states: list[Array]) -> tuple[Run, Callable[[], Array]]:
    import jax
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string(urdf)
    model.opt.gravity = robot.gravity
    on_device = mjx.put_model(model)
    data = mjx.make_data(on_device)

    def effort(q: Any, qd: Any, qdd: Any) -> Any:
        return mjx.inverse(on_device, data.replace(qpos=q, qvel=qd, qacc=qdd)).qfrc_inverse

    return _by_jax(jax.jit(jax.vmap(effort)), [jnp.asarray(x, dtype=jnp.float32) for x in states])


def _by_jax(efforts: Callable[..., Any], states: list[Any]) -> tuple[Run, Callable[[], Array]]:
    import jax

    return lambda: jax.block_until_ready(efforts(*states)), lambda: np.asarray(efforts(*states), dtype=float)


def _warp(robot: Robot, urdf: str, states: list[Array]) -> tuple[Run, Callable[[], Array]]:
    import mujoco
    import mujoco_warp
    import warp

    model = mujoco.MjModel.from_xml_string(urdf)
    model.opt.gravity = robot.gravity
    on_device = mujoco_warp.put_model(model)
    data = mujoco_warp.put_data(model, mujoco.MjData(model), nworld=_STATES)
    for target, values in zip((data.qpos, data.qvel, data.qacc), states, strict=True):
        target.assign(values.astype(np.float32))

    def run() -> None:
        mujoco_warp.inverse(on_device, data)
        warp.synchronize()

    return run, lambda: np.asarray(data.qfrc_inverse.numpy(), dtype=float)


_PEERS = {
    "frax": ("frax: `rnea`", "double", _frax),
    "mujoco.mjx": ("MJX: `inverse`", "single", _mjx),
    "mujoco_warp": ("mujoco-warp: `inverse`", "single", _warp),
}


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def _seconds(run: Run) -> float:
    """The shortest of several repetitions."""
    best = float("inf")
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpu.py: {' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
