# SPDX-License-Identifier: Apache-2.0
"""Fuzzing with coverage: the inputs of the corpus keep the promises of each target, and so do those found from them.

``make fuzz SECONDS=600`` mutates the corpus by atheris. An input that breaks a promise is named; once it is mended, the
input joins the corpus, under the name of what was wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from paths import ROOT

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
LIBRARIES = {"bag": ["rosbags"], "message": ["rosbags"], "xacro_arguments": ["xacro"]}

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))  # for all targets together, s

SHARES = {
    **{"urdf": 0.2, "parameter_file": 0.2, "xacro_arguments": 0.1, "message": 0.15, "bag": 0.1},
    **{"setpoint": 0.15, "trajectory": 0.1},
}
"""Of the time, by target."""


def target(name: str) -> ModuleType:
    for library in LIBRARIES.get(name, ()):
        pytest.importorskip(library)
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return import_module(f"targets.{name}")


def test_every_target_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(SHARES)


@pytest.mark.parametrize("name", SHARES)
def test_corpus(name: str) -> None:
    check = target(name).check
    check(b"")  # loads libraries and compiles code
    for path in sorted((CORPUS / name).iterdir()):
        began = time.process_time()
        check(path.read_bytes())
        assert time.process_time() - began < 1.0, path


@pytest.mark.fuzz
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("name", SHARES)
def test_fuzz(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed")
    target(name)
    new = tmp_path / "new"
    new.mkdir()
    seconds = max(1, round(SECONDS * SHARES[name]))
    options = [f"-max_total_time={seconds}", "-timeout=60", "-print_final_stats=1"]
    options.append(f"-artifact_prefix={tmp_path}/input-")
    command = [sys.executable, str(HERE / "fuzz.py"), name, str(new), str(CORPUS / name), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    count = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    with capsys.disabled():
        print(f"\n{name}: {int(count[1]) if count else 0:,} inputs, {len(list(new.iterdir()))} kept for new branches")
    assert done.returncode == 0, f"add {list(tmp_path.glob('input-*'))} to {CORPUS / name}:\n{done.stderr[-4000:]}"
