# SPDX-License-Identifier: Apache-2.0
"""The configurations of ``examples/drivers``: names of their drivers, and parameters that the controller has."""

import pytest
import yaml
from paths import DOCS, ROOT

from eom_dynamics.export import generic_files

DRIVERS = ROOT / "examples" / "drivers"
# As in the public descriptions that docs/drivers.md names.
JOINTS = {
    "fr3": [f"fr3_joint{i}" for i in range(1, 8)],
    "lbr": [f"lbr_A{i}" for i in range(1, 8)],
    "ur5e": [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")],
    "odrive": ["shoulder", "elbow"],
}


def test_every_driver_has_both_files_and_a_column() -> None:
    files = {f"{name}_{kind}.yaml" for name in JOINTS for kind in ("robot", "controllers")}
    assert {path.name for path in DRIVERS.iterdir()} == files
    assert " | ".join(f"`{name}`" for name in JOINTS) in (DOCS / "drivers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", JOINTS)
def test_configurations(name: str) -> None:
    (robot,) = (each["ros__parameters"]["robot"] for each in _read(f"{name}_robot.yaml").values())
    given, front = (each["ros__parameters"] for each in _read(f"{name}_controllers.yaml").values())
    assert given["joints"] == front["joints"] == robot.get("joint_names", JOINTS[name]) == JOINTS[name]
    # Motors of rigid joints are the joints.
    assert given["motors"] == (JOINTS[name] if name != "odrive" else ["shoulder_motor", "elbow_motor"])
    assert front["command_joints"] == [f"feedforward_controller/{joint}" for joint in JOINTS[name]]
    (declared,) = yaml.safe_load(generic_files()["src/feedforward_controller_parameters.yaml"]).values()
    assert given.pop("type").endswith("_control/FeedforwardController")
    for parameter, value in given.items():
        rules = declared[parameter].get("validation", {})
        assert value in rules.get("one_of<>", [[value]])[0]
        if "subset_of<>" in rules:
            assert set(value) <= set(rules["subset_of<>"][0])
        if "element" in str(rules):
            assert len(value) == len(JOINTS[name])


def _read(name: str) -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    return yaml.safe_load((DRIVERS / name).read_text())
