# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from health import damaged_package_file, dangling_link


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment with one package, as pip records it: a module of 4 bytes, and its byte code."""
    site_packages = tmp_path / "site-packages"
    (tmp_path / "bin").mkdir()
    (site_packages / "it.dist-info").mkdir(parents=True)
    for file in (tmp_path / "pyvenv.cfg", tmp_path / "bin" / "python"):
        file.touch()
    (site_packages / "it.py").write_text("pass")
    (site_packages / "it.dist-info" / "RECORD").write_text(
        "it.py,sha256=abc,4\n__pycache__/it.cpython-312.pyc,sha256=def,100\nit.dist-info/RECORD,,\n"
    )
    return tmp_path


def test_whole_environment_has_no_damage_whatever_python_does_to_byte_code(venv: Path) -> None:
    assert damaged_package_file(venv, venv / "site-packages") is None


@pytest.mark.parametrize("name", ["site-packages/it.py", "pyvenv.cfg", "bin/python"])
def test_missing_file_is_named(venv: Path, name: str) -> None:
    (venv / name).unlink()
    assert Path(damaged_package_file(venv, venv / "site-packages")) == venv / name


def test_truncated_file_is_named(venv: Path) -> None:
    (venv / "site-packages" / "it.py").write_text("pas")
    assert Path(damaged_package_file(venv, venv / "site-packages")) == venv / "site-packages" / "it.py"


def test_dangling_link_is_named(tmp_path: Path) -> None:
    manifest, target, link = tmp_path / "manifest", tmp_path / "target", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    manifest.write_text(f"{link}\n")
    assert dangling_link(manifest) is None
    target.unlink()
    assert dangling_link(manifest) == str(link)
