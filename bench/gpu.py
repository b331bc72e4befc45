# SPDX-License-Identifier: Apache-2.0
"""States a second on a GPU by the exported CUDA code.

    .venv/bin/python bench/gpu.py [ROBOT]

writes the figures to docs/dynamics.md, and needs an NVIDIA GPU and nvcc. The exported code first passes the test that
is exported with it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from harness import DOCS, Section, write_files, write_section

from eom_dynamics import Robot, load_robot
from eom_dynamics.export import project, project_files


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
    columns = ("way", "gives", "precision", "million states a second", "error")
    table = section.table("states a second, data on the device", *columns)
    results = {"feedforward": "motor effort", "inverse_dynamics": "tau, taud, taudd", "effort": "tau"}
    for function, gives in results.items():
        rate, worst = _exported(robot, function)
        table.add(f"exported CUDA: `{function}`", gives, "double", f"{1e-6 * rate:,.0f}", worst)
    section.show()
    source = f"`bench/gpu.py {robot.name}`, {datetime.now(timezone.utc).date().isoformat()}, on one {device}."
    write_section(DOCS / "dynamics.md", section, source)
    return 0


def _exported(robot: Robot, function: str) -> tuple[float, str]:
    """States a second of an exported function, and its largest error, by the test that is exported with it."""
    files, _ = project_files(project(robot, [function]), ["cuda"])
    with tempfile.TemporaryDirectory() as folder:
        code = write_files(Path(folder), files) / "cuda"
        _output(["nvcc", "-O3", "-arch=native", *map(str, code.glob("*.cu")), "-o", str(code / "test")])
        report = _output([str(code / "test")])
    print(report)
    (rate,) = re.findall(rf"_{function} +([0-9.e+]+) states per second", report)
    return float(rate), max(re.findall(r"error +([0-9.e+-]+)", report), key=float)


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpu.py: {' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
