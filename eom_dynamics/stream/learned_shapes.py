# SPDX-License-Identifier: Apache-2.0
"""Compiled calls, prepared as the message shapes of a stream are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays import Array
from .compiled_stream import Shape, ShapeCall, shape_of

# Shapes that are kept: of publishers of setpoints that take turns.
_MOST_SHAPES = 4


class LearnedShapes:
    """Compiled calls for the latest message shapes.

    Attributes:
        latest: call for messages of the shape that was taken last; None until a shape is learned.
    """

    latest: ShapeCall | None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all shapes."""
        self.latest = None
        # That of `latest` first.
        self._calls: list[ShapeCall] = []
        self._before: Shape | None = None

    def set_payload(self, payload: Sequence[Array]) -> None:
        """Set the payload of all calls, as :meth:`.ShapeCall.set_payload`."""
        for call in self._calls:
            call.set_payload(payload)

    def switch_to(self, message: bytes) -> bool:
        """Switch to another call that accepts the message, as :attr:`latest`; return whether there is one."""
        for k, call in enumerate(self._calls[1:], start=1):
            if call.call(message) is not None:
                self._calls.insert(0, self._calls.pop(k))
                self.latest = call
                return True
        return False

    def learn(self, setpoint: Any, message: bytes, call_for: Callable[[Any, bytes], ShapeCall | None]) -> None:
        """Prepare a call for messages like a valid one, once two in a row are alike.

        Args:
            setpoint: the setpoint, which has been answered field by field.
            message: the same as it came, in bytes.
            call_for: creates the call, as :meth:`.CompiledStream.call_for`.
        """
        shape, before = shape_of(setpoint), self._before
        self._before = shape
        if shape != before:
            return
        if any(call.shape == shape for call in self._calls):  # it has taken others and not this one
            return
        if call := call_for(setpoint, message):
            self._calls = [call, *self._calls[: _MOST_SHAPES - 1]]
            self.latest = call
