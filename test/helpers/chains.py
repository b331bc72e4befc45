# SPDX-License-Identifier: Apache-2.0
"""Packaged robots and a chain of joints of all types in fixed states, and draws of numbers, vectors and inertias."""

import copy
import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import yaml
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paths import CONFIG
from scipy.spatial.transform import Rotation

from eom_dynamics import Robot, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import NO_LIMITS

JOINT_TYPES = ("revolute", "prismatic", "helical")


def numbers(limit: float, shape: int | tuple[int, ...]) -> st.SearchStrategy[Array]:
    """Arrays with entries of magnitude up to ``limit``, rounded so that squares do not underflow."""
    entry = st.floats(-limit, limit, allow_nan=False).map(lambda x: round(x, 6))
    return arrays(float, shape, elements=entry, fill=st.nothing())


def unit_vectors() -> st.SearchStrategy[Array]:
    """Unit vectors (3,), often along coordinate axes."""
    anywhere = numbers(1.0, 3).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
    return st.one_of(st.sampled_from([*np.eye(3), *-np.eye(3)]), anywhere)


@st.composite
def inertias(draw: st.DrawFn) -> list[float]:
    """Inertia of a body about its center of mass: xx xy xz yy yz zz, from positive second moments of mass."""
    second_moments = np.array(draw(st.tuples(*[st.floats(0.01, 0.3)] * 3)))
    R = Rotation.from_rotvec(draw(numbers(3.0, 3))).as_matrix()
    inertia = R @ np.diag(second_moments.sum() - second_moments) @ R.T
    return [float(inertia[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]


class Case(NamedTuple):
    """A robot, its description, and q with m time derivatives (m + 1, n)."""

    parameters: dict[str, Any]
    robot: Robot
    motion: Array


FIXED = ("iiwa", "planar_2r", "mixed_chain")  # names for :func:`fixed_case`


def fixed_case(name: str, derivatives: int) -> Case:
    """A packaged robot or the mixed chain in a reproducible random state."""
    parameters = _mixed_chain() if name == "mixed_chain" else packaged_parameters(name)
    robot = robot_from_parameters(parameters)
    return Case(parameters, robot, np.random.default_rng(7).uniform(-2, 2, (derivatives + 1, robot.n)))


def packaged_parameters(name: str, **joints: dict[str, Any]) -> dict[str, Any]:
    """The ``robot`` section of a packaged file, read by PyYAML, with these entries of its joints."""
    parameters = copy.deepcopy(_packaged(name))
    for joint, entries in joints.items():
        parameters["joints"][joint] |= entries
    return parameters


def without_limits(name: str) -> Robot:
    """Packaged robot without joint limits."""
    robot = load_robot(name)
    return replace(robot, joints=tuple(replace(joint, limits=NO_LIMITS) for joint in robot.joints))


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Parameters by full name."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return leaves


@functools.cache
def _packaged(name: str) -> dict[str, Any]:
    text = (CONFIG / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, _Loader)["/**"]["ros__parameters"]["robot"]


class _Loader(yaml.SafeLoader):
    """YAML 1.2: 2.0e4 is a number."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+\.\d*e\d+$"), list("-+0123456789"))


def _mixed_chain() -> dict[str, Any]:
    """All types of joints, axes in general directions and not through the origin, gravity in a general direction."""
    axes = np.array([[1, 2, 2], [2, -1, 2], [-2, 2, 1], [0, 1.8, 2.4]]) / 3
    points = np.array([[0.1, 0.0, -0.2], [0.0, 0.0, 0.0], [0.2, -0.1, 0.3], [0.0, 0.3, 0.1]])
    joints = {}
    for i, kind in enumerate(("revolute", "prismatic", "helical", "revolute")):
        axis = axes[i]
        turning = np.cross(points[i], axis) + (0.1 * axis if kind == "helical" else 0.0)
        screw = [np.zeros(3), axis] if kind == "prismatic" else [axis, turning]
        joints[f"joint_{i + 1}"] = {
            **{"type": kind, "screw": np.concatenate(screw).tolist()},
            **{"origin": {"xyz": [0.1 * i, 0.3, -0.2], "rpy": [0.4 - i, 0.2 * i, 1.0 + i]}, "mass": 3.0 - 0.5 * i},
            **{"center_of_mass": [0.1, -0.05 * i, 0.2], "inertia": [0.05, 0.002, -0.003, 0.04, 0.001, 0.03]},
        }
    return {
        **{"name": "mixed_chain", "joint_names": list(joints), "inertia_reference": "com"},
        **{"gravity": [1.0, -3.0, -9.0], "joints": joints},
    }
