# SPDX-License-Identifier: Apache-2.0
"""``scripts/slim.py``: what it removes and links in an environment, and what it leaves."""

import os
import subprocess
import sys
from pathlib import Path

from paths import ROOT


def test_tests_go_and_equal_files_are_one(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    texts = {
        "numpy/core.py": "a",
        "numpy/linalg/tests/test_a.py": "b",
        "cmake/data/bin/cmake": "c",
        "cmake/data/bin/ctest": "d",
        "../../../bin/ctest": "d",
        "../../../bin/cmake": "c",
        "other/tests/test_b.py": "e",
        "one.libs/lib.so": "x" * 40_000,
        "two.libs/lib.so": "x" * 40_000,
        "three.libs/lib.so": "y" * 40_000,
        "small.libs/lib.so": "z",
        "same.libs/lib.so": "z",
    }
    for name, text in texts.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    for _ in range(2):  # once more changes nothing
        subprocess.run([sys.executable, ROOT / "scripts/slim.py", tmp_path], check=True)
        left = {os.path.relpath(path, packages) for path in tmp_path.rglob("*") if path.is_file()}
        assert left == set(texts) - {"numpy/linalg/tests/test_a.py", "cmake/data/bin/ctest", "../../../bin/ctest"}
        assert all((packages / name).read_text() == texts[name] for name in left)
        one, two, three = (packages / f"{name}.libs/lib.so" for name in ("one", "two", "three"))
        assert one.samefile(two) and not one.samefile(three)
        assert not (packages / "small.libs/lib.so").samefile(packages / "same.libs/lib.so")
