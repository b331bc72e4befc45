# SPDX-License-Identifier: Apache-2.0
"""Arms with payloads, which need no code for each payload."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays import Array
from ..control.spatial import read_payload
from ..dynamics import Dynamics
from ..elastic import DriveCommand, ElasticArm, Feedforward
from ..exceptions import StateError
from ..robot import Robot
from ..robot.payload import payload_parameters, payload_shape, with_parameters
from .interfaces import Payload

MAX_PAYLOADS = 100
"""Largest number of payloads in a request, and of messages that wait."""


def request_payload(arm: ElasticArm, payloads: Sequence[Payload]) -> Array:
    """Parameters of the payloads of a request; raises StateError."""
    if len(payloads) > MAX_PAYLOADS:
        raise StateError(f"payload has {len(payloads)} entries, may have {MAX_PAYLOADS}")
    return payload_parameters(arm.robot, list(map(read_payload, payloads)))


def loaded_arm(arm: ElasticArm, parameters: Array) -> ElasticArm:
    """The arm with payloads of these parameters, by :func:`.payload_parameters`."""
    return _loaded(arm, parameters.tobytes()) if np.any(parameters) else arm


class _LoadedDynamics(Dynamics):
    """Dynamics with functions that are compiled at first use."""

    def __init__(self, robot: Robot, order: int) -> None:
        self.robot, self.order, self.backend, self._functions = robot, order, "numpy", {}


class _LoadedArm(ElasticArm):
    """An arm with payloads of these parameters: a compiler takes seconds, which no new payload may cost.

    Feedforward is compiled code of the arm without payloads, which takes them as an input. Springs and motors are
    the same without payloads. All else is in arrays, at first use. For carried rotors, only their presence matters
    here: their own dynamics, for simulation, ignore payloads.
    """

    def __init__(self, arm: ElasticArm, parameters: Array) -> None:
        self._arm, self._payload = arm, [parameters]
        self.robot, self.backend = with_parameters(arm.robot, parameters), "numpy"
        self._functions, self.calls = {}, {}
        self.dynamics = _LoadedDynamics(self.robot, arm.dynamics.order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arm, name)

    def feedforward(self, *states: Any, **options: Any) -> Feedforward:
        return self._arm.feedforward(*states, **options, payload=self._payload)

    def drive_command(self, command: Feedforward, *states: Any, **options: Any) -> DriveCommand:
        return self._arm.drive_command(command, *states, **options, payload=self._payload)


@lru_cache(maxsize=8)
def _loaded(arm: ElasticArm, parameters: bytes) -> ElasticArm:
    return _LoadedArm(arm, np.frombuffer(parameters).reshape(payload_shape(arm.robot)))
