# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from health import missing_file


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment with a module of 4 bytes and its byte code from pip, and a library from CMake."""
    site_packages = tmp_path / "site-packages"
    (tmp_path / "bin").mkdir()
    (site_packages / "it.dist-info").mkdir(parents=True)
    for name in ("pyvenv.cfg", "bin/python", "libinterfaces.so"):
        (tmp_path / name).touch()
    (tmp_path / "manifest").write_text(f"{tmp_path / 'libinterfaces.so'}\n")
    (site_packages / "it.py").write_text("pass")
    (site_packages / "it.dist-info" / "RECORD").write_text(
        "it.py,sha256=abc,4\n__pycache__/it.cpython-312.pyc,sha256=def,100\nit.dist-info/RECORD,,\n"
    )
    return tmp_path


def damage(venv: Path) -> Path | None:
    found = missing_file(venv, venv / "site-packages", venv / "manifest")
    return None if found is None else Path(found)


def test_complete_environment_with_rewritten_byte_code_has_no_missing_file(venv: Path) -> None:
    assert damage(venv) is None


@pytest.mark.parametrize("name", ["site-packages/it.py", "pyvenv.cfg", "bin/python", "libinterfaces.so"])
def test_missing_file_is_named(venv: Path, name: str) -> None:
    (venv / name).unlink()
    assert damage(venv) == venv / name


def test_truncated_file_is_named(venv: Path) -> None:
    (venv / "site-packages" / "it.py").write_text("pas")
    assert damage(venv) == venv / "site-packages" / "it.py"
