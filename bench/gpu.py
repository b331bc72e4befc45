# SPDX-License-Identifier: Apache-2.0
"""States a second on a GPU by the exported CUDA code, which first passes the test that is exported with it."""

import re
import shutil
import subprocess

from harness import CONSOLE, Section, Settings, scratch, write_files

from eom_dynamics import load_robot
from eom_dynamics.export import project, project_files

FUNCTIONS = {"feedforward": "motor effort", "inverse_dynamics": "tau, taud, taudd", "effort": "tau"}


def gpu(section: Section, settings: Settings) -> None:
    """Build, test and time each exported function."""
    for program in ("nvcc", "nvidia-smi"):
        if not shutil.which(program):
            raise SystemExit(f"gpu: {program} is not installed: an NVIDIA GPU and the CUDA toolkit are needed")
    robot = load_robot(settings.robot or "iiwa")
    device = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).strip()
    table = section.table(
        f"{robot.name} on one {device}: states a second, data on the device",
        *("way", "gives", "precision", "million states a second", "error"),
    )
    for function, gives in FUNCTIONS.items():
        files, _ = project_files(project(robot, [function]), ["cuda"])
        code = write_files(scratch() / f"gpu_{function}", files) / "cuda"
        _output(["nvcc", "-O3", "-arch=native", *map(str, code.glob("*.cu")), "-o", str(code / "test")])
        report = _output([str(code / "test")])
        CONSOLE.print(report)
        (rate,) = re.findall(rf"_{function} +([0-9.e+]+) states per second", report)
        worst = max(re.findall(r"error +([0-9.e+-]+)", report), key=float)
        table.add(f"exported CUDA: `{function}`", gives, "double", f"{1e-6 * float(rate):,.0f}", worst)


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpu: {' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
