# SPDX-License-Identifier: Apache-2.0
"""Compiled calls, prepared as the message shapes of a stream are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays import Array
from .compiled_stream import Shape, ShapedStream, shape_of

# Shapes that are kept: of publishers of setpoints that take turns.
_MOST_SHAPES = 4


class LearnedShapes:
    """Compiled calls for the latest message shapes.

    Attributes:
        latest: call for messages of the shape that was taken last; None until a shape is learned.
    """

    latest: ShapedStream | None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all shapes."""
        self.latest = None
        # That of `latest` first.
        self._streams: list[ShapedStream] = []
        self._before: Shape | None = None

    def load(self, payload: Sequence[Array]) -> None:
        """Set the payload of all calls, as :meth:`.ShapedStream.load`."""
        for stream in self._streams:
            stream.load(payload)

    def turn_to(self, message: bytes) -> bool:
        """Switch to another call that accepts the message, as :attr:`latest`; return whether there is one."""
        for k, stream in enumerate(self._streams[1:], start=1):
            if stream.call(message) is not None:
                self._streams.insert(0, self._streams.pop(k))
                self.latest = stream
                return True
        return False

    def learn(self, setpoint: Any, message: bytes, call_for: Callable[[Any, bytes], ShapedStream | None]) -> None:
        """Prepare a call for messages like a valid one, once two in a row are alike.

        Args:
            setpoint: the setpoint, which has been answered field by field.
            message: the same as it came, in bytes.
            call_for: creates the call, as :meth:`.CompiledStream.shaped`.
        """
        shape, before = shape_of(setpoint), self._before
        self._before = shape
        if shape != before:
            return
        if any(stream.shape == shape for stream in self._streams):  # it has taken others and not this one
            return
        if stream := call_for(setpoint, message):
            self._streams = [stream, *self._streams[: _MOST_SHAPES - 1]]
            self.latest = stream
