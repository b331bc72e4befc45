# SPDX-License-Identifier: Apache-2.0
"""Public names: one for each class, none of the former ones gone."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import defaultdict
from importlib import import_module

import numpy as np
import pytest
from optional_modules import imported
from paths import ROOT

import eom_dynamics as eom
from eom_dynamics.tools.cli.main import _parser

PACKAGE = ROOT / "eom_dynamics"

# Names of the release before. A name that is renamed stays here for one release, and warns.
BEFORE = json.loads((ROOT / "test" / "public_names.json").read_text(encoding="utf-8"))


def test_no_two_public_classes_have_the_same_name() -> None:
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("module", BEFORE["modules"])
def test_public_names_are_there_or_warn(module: str) -> None:
    found = imported(module)
    for name in BEFORE["modules"][module]:
        if name in found.__all__:
            assert getattr(found, name) is not None
        else:
            with pytest.warns(DeprecationWarning, match=rf"\.{name} is now \w+;"):
                assert getattr(found, name) is not None


@pytest.mark.parametrize("name", BEFORE["classes"])
def test_methods_of_main_classes_are_there(name: str) -> None:
    missing = [attribute for attribute in BEFORE["classes"][name] if not hasattr(getattr(eom, name), attribute)]
    assert missing == []


def test_former_methods_warn() -> None:
    dynamics, zero = eom.Dynamics(eom.load_robot("planar_2r"), backend="numpy"), [0.0, 0.0]
    with pytest.warns(DeprecationWarning, match="effort_partials is now inverse_dynamics_derivatives"):
        found = dynamics.effort_partials(zero, zero, zero)
    assert (found[2] == dynamics.inverse_dynamics_derivatives(zero, zero, zero)[2]).all()
    with pytest.warns(DeprecationWarning, match="forward_dynamics_partials is now forward_dynamics_derivatives"):
        found = dynamics.forward_dynamics_partials(zero, zero, zero)
    assert (found[2] == dynamics.forward_dynamics_derivatives(zero, zero, zero)[2]).all()


def test_former_name_of_commanded_stiffness_warns() -> None:
    arm, motion = eom.ElasticArm(eom.load_robot("vsa_planar_2r")), np.full((5, 2), 0.1)
    k = [200.0, 210.0]
    with pytest.warns(DeprecationWarning, match=r"stiffness= of ElasticArm.feedforward is now commanded_stiffness="):
        former = arm.feedforward(*motion, stiffness=(k,))
    np.testing.assert_array_equal(former.motor_effort, arm.feedforward(*motion, commanded_stiffness=(k,)).motor_effort)


def test_former_names_of_times_warn() -> None:
    with pytest.warns(DeprecationWarning, match=r"times= of through is now t="):
        motion = eom.trajectory.through(times=[0.0, 1.0, 2.0], positions=[[0.0], [1.0], [0.0]])
    with pytest.warns(DeprecationWarning, match=r"Spline\.times is now t"):
        assert motion.times is motion.t
    with pytest.warns(DeprecationWarning, match=r"times= of Spline.__init__ is now t="):
        assert eom.trajectory.Spline(times=motion.t, states=motion.states).n == 1
    peak = eom.trajectory.Peak("velocity", "elbow", "rad/s", 1.0, 2.0, 0.5, t=0.3, sample=30)
    with pytest.warns(DeprecationWarning, match=r"Peak\.time is now t"):
        assert peak.time == 0.3


@pytest.mark.parametrize("kind", ["msg", "srv", "action"])
def test_fields_of_interfaces_are_there(kind: str) -> None:
    now = interfaces(kind)
    for name, fields in BEFORE["interfaces"][kind].items():
        assert set(fields) <= set(now.get(name, ())), name


@pytest.mark.parametrize("name", BEFORE["commands"])
def test_commands_and_their_options_are_there(name: str) -> None:
    assert set(BEFORE["commands"][name]) <= set(commands()[name])


@pytest.mark.parametrize("node", BEFORE["parameters"])
def test_parameters_are_there(node: str) -> None:
    assert sorted(set(BEFORE["parameters"][node]) - set(parameters()[node])) == []


def test_the_package_lists_its_names_alone() -> None:
    assert set(eom.__all__) <= set(dir(eom))
    assert not {"Any", "import_module", "TYPE_CHECKING", "extend_path"} & set(dir(eom))


def test_a_star_import_takes_no_former_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from eom_dynamics import *", {})


def interfaces(kind: str) -> dict[str, list[str]]:
    """Types and names of the fields and constants of each file."""
    lines = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in (ROOT / kind).glob(f"*.{kind}")}
    found = {name: [re.match(r"\s*([\w/<=\[\]]+\s+\w+)", line) for line in text] for name, text in lines.items()}
    return {name: [" ".join(field[1].split()) for field in fields if field] for name, fields in found.items()}


def commands() -> dict[str, list[str]]:
    """Options of each command."""
    (found,) = (action for action in _parser()._actions if isinstance(action.choices, dict))
    return {
        name: sorted(option for action in parser._actions for option in action.option_strings)
        for name, parser in found.choices.items()
    }


def parameters() -> dict[str, list[str]]:
    """Names of the parameters of each node, as its table declares them."""
    found = {}
    for node in ("dynamics", "planning", "simulated_robot"):
        tree = ast.parse((PACKAGE / "ros" / node / f"{node}_parameters.py").read_text(encoding="utf-8"))
        common = ast.parse((PACKAGE / "ros" / "node_parameters.py").read_text(encoding="utf-8"))
        keys = [
            key.value
            for part in (tree, common)
            for each in ast.walk(part)
            if isinstance(each, ast.Dict)
            for key in each.keys
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        found[node] = sorted(set(keys))
    return found


if __name__ == "__main__":  # writes the list, before a release
    rooms = [path.parent.name for path in sorted(PACKAGE.glob("*/__init__.py")) if "__all__" in path.read_text()]
    modules = ["eom_dynamics", *(f"eom_dynamics.{room}" for room in rooms)]
    modules += ["eom_dynamics.bags", "eom_dynamics.tools.replay"]
    classes = [
        *("Dynamics", "Kinematics", "ElasticArm", "FloatingBase", "EquationsOfMotion", "Robot", "Joint"),
        *("Feedforward", "InverseMotion"),
    ]
    listed = {
        "modules": {name: sorted(import_module(name).__all__) for name in modules},
        "classes": {name: [x for x in sorted(dir(getattr(eom, name))) if not x.startswith("_")] for name in classes},
        "interfaces": {kind: interfaces(kind) for kind in ("msg", "srv", "action")},
        "commands": commands(),
        "parameters": parameters(),
    }
    text = re.sub(r"\[\n[^{}]*?\n +\]", lambda found: " ".join(found[0].split()), json.dumps(listed, indent=1))
    (ROOT / "test" / "public_names.json").write_text(text + "\n", encoding="utf-8")
