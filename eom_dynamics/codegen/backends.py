# SPDX-License-Identifier: Apache-2.0
"""Kernels by backend: compiled C, or NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from ..arguments import SYMBOLIC, all_finite, choice, flag, is_symbolic
from ..arrays import Array
from ..exceptions import KernelError, RobotDescriptionError, StateError, warn_of_kernel
from ..robot import Robot
from .cache import digest
from .native import NativeKernel
from .program import Program
from .recipe import Recipe
from .straight_line import python_function


class Kernel(Protocol):
    """Executable program of one robot."""

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states.

        Args:
            inputs: an array (count, size) for each input of the program, or (1, size) if all states share it. Rows are
                contiguous.
            outputs: a C-contiguous array (count, size) for each output; filled by the call.

        Returns:
            True if all inputs are finite. Otherwise the outputs of states with such an input, and possibly others, are
            unchanged.
        """


class NumpyKernel:
    """Program as a Python function: over numbers for one state, over arrays for a batch."""

    def __init__(self, robot: Robot | None, recipe: Recipe) -> None:
        self._function = python_function(recipe(robot))

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states; see :class:`Kernel`."""
        if not all_finite(*inputs):
            return False
        columns = [column for array in inputs for column in array.T]
        try:
            # Arithmetic on Python floats takes a third of the time of NumPy scalars.
            results = iter(self._function([column.item() for column in columns] if count == 1 else columns))
        except ZeroDivisionError:
            results = iter(self._function(columns))  # x / 0 is infinite, as in the other backends
        for output in outputs:
            for column in output.T:
                column[:] = next(results)
        return True


KERNELS: Mapping[str, Callable[[Robot | None, Recipe], Kernel]] = MappingProxyType(
    {"native": NativeKernel, "numpy": NumpyKernel}
)
"""Kernel classes by backend, the fastest first; each takes a robot and a recipe."""


def kernel_of(program: Program, backend: str) -> Kernel:
    """Kernel of a traced program, for a backend in KERNELS."""
    content = digest(repr(program.inputs), repr(program.outputs), repr(program.nodes), repr(program.results))
    return KERNELS[backend](None, Recipe(program.name, lambda _: program, (content,)))


def require_robot(robot: object) -> None:
    """Raise TypeError unless the argument is a Robot."""
    if not isinstance(robot, Robot):
        raise TypeError(f"robot must be a Robot, as returned by load_robot, is {robot!r:.60}")


def require_numeric_robot(robot: Robot) -> None:
    """Raise TypeError unless the argument is a Robot without symbols."""
    require_robot(robot)
    for joint in robot.joints:
        for part in (joint.mass, joint.center_of_mass, joint.inertia_about_origin, joint.screw, joint.reference_pose):
            if is_symbolic(np.asarray(part)):
                raise TypeError(f"{robot.name}: joint {joint.name} is symbolic: {SYMBOLIC}")


def with_friction(robot: Robot, friction: bool | None, rotors: bool = False) -> Robot:
    """Robot with or without joint friction and the rotors of rigid joints; None leaves a property unchanged.

    Raises:
        RobotDescriptionError: the rotors are more than inertias of rigid joints.
        StateError: ``friction`` or ``rotors`` is something else.
        TypeError: ``robot`` is not a Robot, or has symbols.
    """
    require_numeric_robot(robot)
    if friction is not None and not isinstance(friction, bool | np.bool_):
        raise StateError(f"friction must be True, False, or None for the robot's default, is {friction!r:.60}")
    flag(rotors, "rotor_inertia")
    if rotors and (robot.rotor_model != "reduced" or robot.transmission is not None):
        what = "a transmission" if robot.transmission is not None else f"the {robot.rotor_model} rotor model"
        raise RobotDescriptionError(
            f"{robot.name}: rotor_inertia=True adds rotors to rigid joints one by one, and this robot has {what}; take "
            "the motor efforts of ElasticArm(robot).feedforward"
        )
    friction = robot.joint_friction if friction is None else bool(friction)
    if (friction, rotors) == (robot.joint_friction, robot.joint_rotors):
        return robot
    return replace(robot, joint_friction=friction, joint_rotors=bool(rotors))


def working_kernel(robot: Robot, recipe: Recipe, backend: str | None) -> tuple[str, Kernel]:
    """Kernel of a program and the name of its backend.

    Args:
        backend: a name in KERNELS. None selects ``native``; if it is unavailable, ``numpy``, with a
            :class:`KernelWarning` that gives the reason.
    """
    require_robot(robot)
    if backend is not None:
        choice(backend, "backend", KERNELS)
        return backend, KERNELS[backend](robot, recipe)
    try:
        return "native", NativeKernel(robot, recipe)
    except KernelError as error:
        warn_of_kernel(f"{robot.name}: using the slower numpy backend: {error}")
        return "numpy", NumpyKernel(robot, recipe)
