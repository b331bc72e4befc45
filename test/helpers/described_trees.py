# SPDX-License-Identifier: Apache-2.0
"""Descriptions of random robots with joints of all types, as URDF and as parameters."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from eom_dynamics.arrays import Array

TYPES = ("revolute", "continuous", "prismatic", "helical", "fixed", "planar", "floating", "mimic")
_CHANCES = (0.3, 0.1, 0.15, 0.1, 0.15, 0.05, 0.04, 0.11)

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass
class DescribedJoint:
    """A joint and the link that it moves; ``leader``, ``ratio`` and ``offset`` are of mimic joints."""

    name: str
    type: str
    parent: str
    xyz: Array
    rpy: Array
    axis: Array
    pitch: float = 0.0
    leader: str = ""
    ratio: float = 1.0
    offset: float = 0.0
    mass: float = 0.0
    inertial_xyz: Array = field(default_factory=lambda: np.zeros(3))
    inertial_rpy: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    @property
    def link(self) -> str:
        return f"{self.name}_link"


@dataclass
class DescribedTree:
    """Joints, parents before children, and the names of the tool links."""

    joints: list[DescribedJoint]
    tools: list[str]

    def urdf(self) -> str:
        """URDF with a rotation and a mimicking translation for each helical joint."""
        parts = ['<link name="base"/>']
        for joint in self.joints:
            parts.append(_link(joint))
            if joint.type != "helical":
                parts.append(_joint(joint, joint.type, joint.parent, joint.link, joint.xyz, joint.rpy))
                continue
            nut, zero = f"{joint.name}_nut", np.zeros(3)
            parts.append(f'<link name="{nut}"/>')
            parts.append(_joint(joint, "continuous", joint.parent, nut, joint.xyz, joint.rpy))
            follows = f'<mimic joint="{joint.name}" multiplier="{joint.pitch!r}"/>'
            parts.append(
                f'<joint name="{joint.name}_slide" type="prismatic">{_ends(nut, joint.link)}'
                f"{_origin(zero, zero)}{_axis(joint)}{_LIMIT}{follows}</joint>"
            )
        return f'<robot name="tree">{"".join(parts)}</robot>'

    def parameters(self) -> dict[str, Any]:
        """``robot`` section of a parameter file; each body's frame is the frame of the link in the URDF."""
        return {
            **{"name": "tree", "joint_names": [joint.link for joint in self.joints], "inertia_reference": "com"},
            **{"tool_names": self.tools, "joints": {joint.link: self._entry(joint) for joint in self.joints}},
        }

    def _entry(self, joint: DescribedJoint) -> dict[str, Any]:
        kind = joint.type
        entry: dict[str, Any] = {
            "type": kind,
            "parent": joint.parent,
            "origin": {"xyz": joint.xyz.tolist(), "rpy": joint.rpy.tolist()},
        }
        if kind == "prismatic":
            entry["screw"] = [0.0, 0.0, 0.0, *joint.axis.tolist()]
        elif kind in ("revolute", "continuous", "helical"):
            entry["screw"] = [*joint.axis.tolist(), *(joint.pitch * joint.axis).tolist()]
        if joint.leader:
            entry["mimic"] = {"joint": f"{joint.leader}_link", "ratio": joint.ratio, "offset": joint.offset}
        if joint.mass:
            R = Rotation.from_euler("xyz", joint.inertial_rpy).as_matrix()
            inertia = R @ joint.inertia @ R.T
            entry["mass"] = joint.mass
            entry["center_of_mass"] = joint.inertial_xyz.tolist()
            entry["inertia"] = [float(inertia[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
        return entry


def random_tree(seed: int) -> DescribedTree:
    """A tree of 2 to 30 bodies, determined by the seed."""
    rng = np.random.default_rng(seed)
    joints: list[DescribedJoint] = []
    leaders: list[str] = []
    for i in range(rng.integers(2, 31)):
        kind = str(rng.choice(TYPES, p=_CHANCES)) if i else "revolute"
        leader = ""
        if kind == "mimic":
            kind, leader = str(rng.choice(["revolute", "prismatic"])), str(rng.choice(leaders))
        above = ["base", *(joint.link for joint in joints)]
        axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3)
        joint = DescribedJoint(
            name=f"joint_{i}",
            type=kind,
            parent=above[-1] if rng.random() < 0.6 else str(rng.choice(above)),
            xyz=rng.uniform(-0.5, 0.5, 3).round(3),
            rpy=rng.uniform(-3, 3, 3).round(3),
            axis=np.array([0.0, 0.0, 1.0]) if kind == "planar" else axis / np.linalg.norm(axis),
            pitch=round(rng.uniform(0.05, 0.3), 3) if kind == "helical" else 0.0,
            leader=leader,
            ratio=float(rng.choice([-2.0, -1.0, 0.5, 1.0, 1.7])),
            offset=float(rng.choice([0.0, 0.3, -1.2])),
        )
        if kind != "fixed" or rng.random() < 0.5:
            _give_mass(joint, rng)
        joints.append(joint)
        if kind in ("revolute", "continuous", "prismatic", "helical"):
            leaders.append(joint.name)
    moved = _moved(joints)
    tools = rng.choice(moved, size=min(len(moved), rng.integers(1, 4)), replace=False)
    return DescribedTree(joints, [str(name) for name in tools])


def _give_mass(joint: DescribedJoint, rng: np.random.Generator) -> None:
    """A body with three different moments, in any inertial frame."""
    second_moments = rng.uniform(0.01, 0.2, 3)
    R = Rotation.from_rotvec(rng.uniform(-1, 1, 3)).as_matrix()
    joint.mass = round(rng.uniform(0.5, 5.0), 3)
    joint.inertial_xyz = rng.uniform(-0.3, 0.3, 3).round(3)
    joint.inertial_rpy = rng.uniform(-3, 3, 3).round(3)
    joint.inertia = R @ np.diag(second_moments.sum() - second_moments) @ R.T


def _moved(joints: list[DescribedJoint]) -> list[str]:
    """The links that some joint moves."""
    moved: list[str] = []
    for joint in joints:
        if joint.type != "fixed" or joint.parent in moved:
            moved.append(joint.link)
    return moved


_LIMIT = '<limit effort="10" velocity="2" lower="-3" upper="3"/>'


def _link(joint: DescribedJoint) -> str:
    if not joint.mass:
        return f'<link name="{joint.link}"/>'
    I = joint.inertia  # noqa: E741  the letter of every textbook
    values = (I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2])
    moments = " ".join(f'{name}="{float(value)!r}"' for name, value in zip(_MOMENTS, values, strict=True))
    return (
        f'<link name="{joint.link}"><inertial>{_origin(joint.inertial_xyz, joint.inertial_rpy)}'
        f'<mass value="{joint.mass!r}"/><inertia {moments}/></inertial></link>'
    )


def _joint(joint: DescribedJoint, kind: str, parent: str, child: str, xyz: Array, rpy: Array) -> str:
    mimic = ""
    if joint.leader:
        mimic = f'<mimic joint="{joint.leader}" multiplier="{joint.ratio!r}" offset="{joint.offset!r}"/>'
    return (
        f'<joint name="{joint.name}" type="{kind}">{_ends(parent, child)}{_origin(xyz, rpy)}{_axis(joint)}'
        f"{_LIMIT}{mimic}</joint>"
    )


def _ends(parent: str, child: str) -> str:
    return f'<parent link="{parent}"/><child link="{child}"/>'


def _origin(xyz: Array, rpy: Array) -> str:
    return f'<origin xyz="{_words(xyz)}" rpy="{_words(rpy)}"/>'


def _axis(joint: DescribedJoint) -> str:
    return f'<axis xyz="{_words(joint.axis)}"/>'


def _words(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)
