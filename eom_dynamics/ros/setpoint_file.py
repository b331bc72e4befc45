# SPDX-License-Identifier: Apache-2.0
"""Setpoint files for the players: .npz with q … qdddd, see :mod:`.player`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..exceptions import EomDynamicsError
from ..messages.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ..messages.samples import doubles
from ..messages.wrenches import wrench_messages
from ..states import STATE_NAMES


class PlayerError(EomDynamicsError):
    """Setpoints cannot be played, or are not answered."""


@dataclass(frozen=True)
class Setpoints:
    """Setpoints to play.

    Attributes:
        joint_names: order of the joints; empty for the robot's own.
        rows: array (N, n) or (N, 6 k) of each nonempty field of the setpoint message.
    """

    joint_names: list[str]
    rows: dict[str, Array]

    @property
    def count(self) -> int:
        """Number of setpoints N."""
        return len(self.rows["position"])

    def fill(self, message: Any, index: int, stamp: int) -> None:
        """Write one setpoint into a message.

        Args:
            message: to write to; its joint names remain.
            index: of the setpoint.
            stamp: of its header, ns.
        """
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 1_000_000_000)
        for field, values in self.rows.items():
            setattr(message, field, (wrench_messages if field in WRENCH_FIELDS else doubles)(values[index]))


def read_setpoints(path: Path) -> Setpoints:
    """Read a file of setpoints; see the module docstring for its format."""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise PlayerError(f"{path}: must be .npz, with q … qdddd, is .npy")
        with file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise PlayerError(f"{path}: cannot be read as .npz: {error}") from None
    rows: dict[str, Array] = {}
    for name, field in zip(STATE_NAMES, STATE_FIELDS, strict=True):
        if name not in arrays:
            raise PlayerError(f"{path}: {name} is missing")
        rows[field] = _numbers(path, name, arrays[name])
    shape = rows["position"].shape
    if len(shape) != 2 or 0 in shape:
        raise PlayerError(f"{path}: q must be (N, n), has shape {shape}")
    optional = (*WRENCH_FIELDS, *STIFFNESS_FIELDS)
    rows |= {field: _numbers(path, field, arrays[field]) for field in optional if field in arrays}
    for field, values in rows.items():
        if field in WRENCH_FIELDS:
            fits = values.ndim == 2 and len(values) == shape[0] and values.shape[1] > 0 and values.shape[1] % 6 == 0
            wanted = f"({shape[0]}, 6), or more columns with several tools"
        else:
            fits, wanted = values.shape == shape, str(shape)
        if not fits:
            name = field if field in optional else STATE_NAMES[STATE_FIELDS.index(field)]
            raise PlayerError(f"{path}: {name} must be {wanted}, has shape {values.shape}")
    joint_names = [str(name) for name in arrays.get("joint_names", ())]
    if joint_names and len(joint_names) != shape[1]:
        raise PlayerError(f"{path}: joint_names has {len(joint_names)} entries, q has {shape[1]} columns")
    return Setpoints(joint_names, rows)


def _numbers(path: Path, name: str, values: NDArray[Any]) -> Array:
    if values.dtype.kind not in "fiu":
        raise PlayerError(f"{path}: {name} holds no numbers")
    return values.astype(float)
