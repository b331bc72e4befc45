# SPDX-License-Identifier: Apache-2.0
"""Methods that run compiled functions, for one state or a small batch at the cost of a C call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite
from ..arrays import Array
from ..recursion.inverse_mass_matrix import ROUNDING, refuse_singular
from ..robot import Robot
from .backends import KERNELS
from .functions import CompiledFunction, Signature
from .programs import WITH_PAYLOAD
from .recipe import Recipe

Key: TypeAlias = tuple[object, ...]
"""Quantity and further dependencies of its program, such as the frame."""

# Largest ratio of an entry of M between configurations of an arm.
_FOLDED = 1e4

_Method = TypeVar("_Method", bound=Callable[..., Any])


class CompiledMethods:
    """Base of classes of one robot with a compiled function for each method.

    A subclass declares the signatures, and sets backend and robot. Methods with further dependencies, such as a frame,
    store a function for each key of quantity and details.
    """

    robot: Robot
    backend: str
    _functions: dict[str, CompiledFunction]
    _calls: dict[Key, Callable[..., Any]]

    def signature(self, method: str) -> Signature:
        """Signature of a compiled method: names, shapes for one state, meanings and units.

        >>> import eom_dynamics as eom
        >>> for row in eom.Dynamics(eom.load_robot("planar_2r")).signature("mass_matrix").table():
        ...     print(*row)
        q (2,) joint variables, rad or m
        → M (2, 2) mass matrix, kg m², kg m or kg
        """
        raise NotImplementedError

    def _recipe(self, name: str) -> Recipe:
        """Recipe of the program of a method."""
        raise NotImplementedError

    def _function(self, name: str) -> CompiledFunction:
        """Function of a method, made at first use."""
        function = self._functions.get(name)
        if function is None:
            kernel = KERNELS[self.backend](self.robot, self._recipe(name))
            refused: dict[str, Any] = {}
            if name.startswith("forward_dynamics"):
                # A singular mass matrix gives NaN.
                refused = {"finite_results": True, "refuse": self._refuse_singular}
            function = self._functions[name] = CompiledFunction(self.signature(name), kernel, **refused)
        return function

    def _stored_call(self, key: Key) -> Callable[..., Any] | None:
        """Stored function of a key; None if missing or if the frame name is unhashable."""
        try:
            return self._calls.get(key)
        except TypeError:
            return None

    def _keep(self, key: Key, recipe: Recipe, signature: Signature) -> Callable[..., Any]:
        function = CompiledFunction(signature, KERNELS[self.backend](self.robot, recipe))
        call = self._calls[key] = function.state_call()
        return call

    def _refuse_singular(self, inputs: Mapping[str, Array]) -> None:
        """Raise RobotDescriptionError if the mass matrix is singular, which leaves accelerations open."""
        M: Array = self._run("mass_matrix", inputs["q"])[0]
        if "added_inertia" in inputs:
            M = M + np.eye(M.shape[-1]) * inputs["added_inertia"][..., np.newaxis, :]
        if all_finite(M):
            # Pivots of the recursion are relative to the largest entries in any configuration.
            refuse_singular(self.robot.name, M, _FOLDED * ROUNDING)

    def _run(
        self,
        name: str,
        *arguments: ArrayLike | None,
        payload: Any = None,
        out: Sequence[Array] | None = None,
        **keywords: Any,
    ) -> tuple[Array, ...]:
        """Run a function; with a payload, the variant that reads payload parameters."""
        if payload is not None:
            name, keywords = name + WITH_PAYLOAD, {**keywords, "payload": payload}
            if out is None and type(payload) is tuple:
                call = self.__dict__.get(name)
                if call is None:
                    call = self.__dict__[name] = self._function(name).state_call()
                results = call(*arguments, **keywords)
                return results if isinstance(results, tuple) else (results,)
        return self._function(name).results(*arguments, out=out, **keywords)

    def _state_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Method of a function's name, or a compiled caller for one state in front of it."""
        return self._function(name).state_call(method)


class _StateMethod:
    """Method with a compiled caller in front of it in each instance, made at first access."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, methods: CompiledMethods | None, owner: type | None = None) -> Callable[..., Any]:
        if methods is None:
            return self._method
        call = methods._state_call(self._name, self._method.__get__(methods))
        # Not through vars(), which would slow down each attribute access of the instance.
        setattr(methods, self._name, call)
        return call


def state_method(method: _Method) -> _Method:
    """Decorate a method of a subclass of :class:`CompiledMethods`."""
    return cast(_Method, _StateMethod(method))
