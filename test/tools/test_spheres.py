# SPDX-License-Identifier: Apache-2.0
"""Spheres from a URDF and from YAML, and files without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.tools.excite import read_spheres

URDF = """<robot name="r"><link name="a"><collision><origin xyz="1 2 3"/><geometry><sphere radius="0.5"/></geometry>
</collision><collision><geometry><sphere radius="0.25"/></geometry></collision>
<collision><geometry><box size="1 1 1"/></geometry></collision></link><link name="b"/></robot>"""


@pytest.mark.parametrize(("name", "text"), [("r.urdf", URDF), ("r.yaml", "a: [[1, 2, 3, 0.5], [0, 0, 0, 0.25]]")])
def test_reads(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_spheres(tmp_path / name) == {"a": [[1, 2, 3, 0.5], [0, 0, 0, 0.25]]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.urdf", "<robot name='r'><link name='a'/></robot>", "has no collision spheres"),
        ("r.urdf", "<robot", "not valid XML"),
        ("r.urdf", URDF.replace("0.25", "wide"), "radius"),
        ("r.yaml", "", "must hold lists of spheres"),
        ("r.yaml", "{}", "has no collision spheres"),
        ("r.yaml", "a: [1, 2", "not valid YAML"),
        ("r.yaml", "[1, 2]", "must hold lists"),
    ],
)
def test_errors(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RobotDescriptionError, match=message) as raised:
        read_spheres(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RobotDescriptionError, match=r"none\.yaml"):
        read_spheres(tmp_path / "none.yaml")
