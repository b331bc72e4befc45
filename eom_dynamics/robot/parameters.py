# SPDX-License-Identifier: Apache-2.0
"""A robot from the ``robot`` section of a ROS 2 parameter tree, every entry checked.

The section, as it stands in a parameter file (units SI, angles in rad):

.. code-block:: yaml

    robot:
      name: my_arm
      joint_names: [shoulder, elbow]      # the chain, from the base to the tool
      inertia_reference: com              # inertias are about: com (centre of mass) | link (body frame)
      gravity: [0.0, 0.0, -9.80665]       # optional; gravitational acceleration in the base frame
      joints:
        shoulder:
          type: revolute                  # revolute | prismatic | helical
          screw: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]   # in the body's frame, angular part first
          origin: {xyz: [0.0, 0.0, 0.3], rpy: [0.0, 0.0, 0.0]}   # body in its parent at q = 0
          mass: 2.0
          center_of_mass: [0.0, 0.0, 0.1]
          inertia: [0.01, 0.0, 0.0, 0.01, 0.0, 0.005]            # xx xy xz yy yz zz
          elasticity: {type: linear, stiffness: 1.0e4}           # optional; linear | rigid (default)
          rotor_inertia: 0.2              # optional (0); on the link side of the gear
        elbow: ...
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..exceptions import RobotDescriptionError, RobotDescriptionWarning
from . import inertia as inertias
from .model import STANDARD_GRAVITY, Joint, Robot

Array = NDArray[np.float64]

# An axis written with six digits is a unit vector to this; it is then normalised.
_UNIT_TOLERANCE = 1e-5

# No robot has an entry beyond these, in SI units; products of what is beyond them overflow.
_LARGEST, _SMALLEST = 1e12, 1e-12


def robot_from_parameters(parameters: Mapping[str, Any], source: str = "parameters") -> Robot:
    """Build a robot from the ``robot`` section of a parameter tree.

    Args:
        parameters: the section's contents as nested mappings, numbers and lists.
        source: where they come from; the start of every error message.

    Raises:
        RobotDescriptionError: an entry is missing, unknown, of the wrong type or length, not finite, or
            says something that no body or joint can be. The message names the parameter and the reason.
    """
    with _Section(parameters, "robot", source) as robot:
        name = robot.text("name")
        names = robot.names("joint_names")
        reference = robot.choice("inertia_reference", ("com", "link"))
        gravity = robot.vector("gravity", 3, default=STANDARD_GRAVITY)
        with robot.section("joints") as joints:
            built = tuple(
                _joint(joints.section(joint_name), joint_name, parent=i - 1, reference=reference)
                for i, joint_name in enumerate(names)
            )
    if reference == "link":
        _warn_of_impossible(built, source)
    return Robot(name=name, joints=built, gravity=gravity)


def _warn_of_impossible(joints: Sequence[Joint], source: str) -> None:
    """Warn where inertias about the link frame leave less than nothing about the centre of mass.

    No error, since published results exist that were computed from such a table.
    """
    impossible = [
        joint.name
        for joint in joints
        if inertias.objection(joint.inertia_about_origin - inertias.steiner(joint.mass, joint.center_of_mass))
    ]
    if impossible:
        warnings.warn(
            f"{source}: robot.inertia_reference: link gives inertias about the centre of mass that no body can have "
            f"({', '.join(impossible)}); does the table refer to the centre of mass (com)?",
            RobotDescriptionWarning,
            stacklevel=3,
        )


def _joint(section: _Section, name: str, parent: int, reference: str) -> Joint:
    with section as joint:
        screw = _screw(joint)
        with joint.section("origin") as origin:
            xyz = origin.vector("xyz", 3)
            rpy = origin.vector("rpy", 3)
        mass = joint.positive("mass")
        center_of_mass = joint.vector("center_of_mass", 3)
        inertia = inertias.symmetric(*joint.vector("inertia", 6))
        if reason := inertias.objection(inertia):
            joint.refuse("inertia", f"{reason}; the order is xx xy xz yy yz zz")
        if reference == "com":
            inertia = inertia + inertias.steiner(mass, center_of_mass)
        rotor_inertia = joint.number("rotor_inertia", default=0.0)
        if rotor_inertia < 0:
            joint.refuse("rotor_inertia", f"must not be negative, is {rotor_inertia:g}")
        return Joint(
            name=name,
            screw=screw,
            reference_pose=lie.pose(lie.rotation_from_rpy(rpy), xyz),
            parent=parent,
            mass=mass,
            center_of_mass=center_of_mass,
            inertia_about_origin=inertia,
            stiffness=_stiffness(joint),
            rotor_inertia=rotor_inertia,
        )


def _screw(joint: _Section) -> Array:
    """Read and normalise the joint screw, and hold it against the declared type of joint."""
    kind = joint.choice("type", ("revolute", "prismatic", "helical"))
    screw = joint.vector("screw", 6)
    axis, linear = screw[:3], screw[3:]
    if kind == "prismatic":
        if np.any(axis):
            joint.refuse("screw", "a prismatic joint has no angular part: its first three entries must be 0")
        axis = linear
    length = float(np.linalg.norm(axis))
    if length == 0:
        joint.refuse("screw", "its axis is zero; it needs a unit vector")
    if abs(length - 1) > _UNIT_TOLERANCE:
        joint.refuse("screw", f"its axis must be a unit vector, has length {length:g}")
    screw = screw / length
    pitch = float(screw[:3] @ screw[3:])
    if kind == "revolute" and abs(pitch) > _UNIT_TOLERANCE:
        joint.refuse("screw", f"a revolute joint has no pitch, this one has {pitch:g} m/rad; is it helical?")
    if kind == "helical" and pitch == 0:
        joint.refuse("screw", "a helical joint needs a pitch (linear part along the axis); is it revolute?")
    return screw


def _stiffness(joint: _Section) -> float:
    if "elasticity" not in joint:
        return math.inf
    with joint.section("elasticity") as elasticity:
        if elasticity.choice("type", ("linear", "rigid")) == "rigid":
            return math.inf
        return elasticity.positive("stiffness")


class _Section:
    """One mapping of the tree: typed reading, and an error that names the full parameter for each misuse.

    As a context manager it refuses, at its end, entries that nobody has read.
    """

    def __init__(self, mapping: Any, name: str, source: str) -> None:
        self._name, self._source = name, source
        if not isinstance(mapping, Mapping):
            raise RobotDescriptionError(f"{source}: {name}: must be a section, is {_shown(mapping)}")
        self._mapping = mapping
        self._known: list[str] = []

    def __enter__(self) -> _Section:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            return
        for key in self._mapping:
            if key not in self._known:
                close = difflib.get_close_matches(str(key), [k for k in self._known if k not in self._mapping], n=1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(dict.fromkeys(self._known))}"
                self.refuse(key, f"unknown entry; {hint}")

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key in self._mapping

    def path(self, key: str) -> str:
        return f"{self._source}: {self._name}.{key}"

    def refuse(self, key: str, reason: str) -> None:
        raise RobotDescriptionError(f"{self.path(key)}: {reason}")

    def section(self, key: str) -> _Section:
        return _Section(self._read(key), f"{self._name}.{key}", self._source)

    def text(self, key: str) -> str:
        value = self._read(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, f"must be a text, is {_shown(value)}")
        return str(value)

    def choice(self, key: str, options: Sequence[str]) -> str:
        value = self._read(key)
        if not isinstance(value, str) or value not in options:
            self.refuse(key, f"must be one of {', '.join(options)}, is {_shown(value)}")
        return str(value)

    def names(self, key: str) -> list[str]:
        value = self._read(key)
        if not _is_list(value) or not len(value) or not all(isinstance(v, str) and v for v in value):
            self.refuse(key, f"must be a list of at least one name, is {_shown(value)}")
        names = list(value)
        for name in names:
            if names.count(name) > 1:
                self.refuse(key, f"{name!r} stands there twice")
            if "." in name or "/" in name:
                self.refuse(key, f"{name!r} has a '.' or '/', which ROS 2 parameter names cannot hold")
            if not name.isprintable() or name != name.strip():
                self.refuse(key, f"{name!r} has control characters, or blanks at an end")
        return names

    def number(self, key: str, default: float | None = None) -> float:
        value = self._read(key, default)
        if not _is_number(value):
            self.refuse(key, f"must be a number, is {_shown(value)}")
        self._check_size(key, [value])
        return float(value)

    def positive(self, key: str) -> float:
        value = self.number(key)
        if value <= 0:
            self.refuse(key, f"must be greater than 0, is {value:g}")
        if value < _SMALLEST:
            self.refuse(key, f"must be at least {_SMALLEST:g}, is {value:g}")
        return value

    def vector(self, key: str, length: int, default: Sequence[float] | None = None) -> Array:
        value = self._read(key, default)
        if not _is_list(value) or not all(_is_number(v) for v in value):
            self.refuse(key, f"must be a list of {length} numbers, is {_shown(value)}")
        if len(value) != length:
            self.refuse(key, f"must have {length} entries, has {len(value)}")
        self._check_size(key, value)
        return np.array(value, dtype=float)

    def _check_size(self, key: str, values: Sequence[float]) -> None:
        for value in values:
            if isinstance(value, float) and not math.isfinite(value):
                self.refuse(key, f"must be finite, is {value}")
            if abs(value) > _LARGEST:
                self.refuse(key, f"must not exceed {_LARGEST:g} in SI units, is {_shown(value)}")

    def _read(self, key: str, default: Any = None) -> Any:
        self._known.append(key)
        value = self._mapping.get(key, default)
        if value is None and key in self._mapping:
            self.refuse(key, "has no value")
        if value is None:
            unread = [str(k) for k in self._mapping if k not in self._known]
            close = difflib.get_close_matches(key, unread, n=1, cutoff=0.8)
            self.refuse(key, f"missing; is it what is called {close[0]}?" if close else "missing")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    # rclpy hands arrays over as array.array, a parameter file as list.
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
