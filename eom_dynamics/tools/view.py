# SPDX-License-Identifier: Apache-2.0
"""Viewer of robots and recordings in a browser, by viser: scene, and sliders for joints and time."""

from __future__ import annotations

import io
import logging
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rich
import viser
import yourdfpy
from viser.extras import ViserUrdf

from ..arrays import Array
from ..bags import BagError
from ..exceptions import EomDynamicsError
from ..robot import Robot
from ..robot.readers.files import located
from ..robot.readers.loading import urdf_of
from ..robot.writers.urdf import robot_as_urdf
from .identify.read import TABLES, check_bag, read_recording
from .recording_options import Sampling, Source, renaming_to
from .report import read_records
from .robot_options import RobotOptions


class PlayedMotion(NamedTuple):
    """A recording to play: increasing times (N,) from 0, s, positions (N, n) at them, and notes, one line each."""

    name: str
    t: Array
    q: Array
    notes: tuple[str, ...] = ()

    def at(self, t: float) -> Array:
        """Positions (n,) at a time, interpolated linearly; the first or last ones beyond the ends."""
        return np.array([np.interp(t, self.t, column) for column in self.q.T])


def read_played_motion(path: Path, robot: Robot, sampling: Sampling, options: RobotOptions) -> PlayedMotion:
    """Read measured positions, else those of setpoints, from a bag, or from a table as for ``identify``.

    A joint that was not recorded stays at zero. Raises BagError, IdentificationError or OSError.
    """
    if path.suffix in TABLES:
        links = read_recording(path, robot, Source(conventions=sampling.conventions))
        return _known(robot, PlayedMotion(links.name, links.t, links.q, links.notes))
    check_bag(path)
    records = read_records(path, robot, sampling.conventions, options)
    record = next((record for record in records if record.robot is not None), None)
    if record is None:
        joints = records[0].joints
        has = f"has none of the joints of this recording, which has {', '.join(joints) or 'no joints'}"
        raise BagError(f"{path}: robot {robot.name} {has}{renaming_to(robot.joint_names, joints)}")
    stream = record.measured if record.measured and "position" in record.measured.values else record.setpoint
    if stream is None:
        raise BagError(f"{path}: has no positions of links; play the recording that it was computed from")
    columns = dict(zip(stream.names, stream.values["position"].T, strict=True))
    q = np.column_stack([columns.get(name, np.zeros(len(stream))) for name in robot.joint_names])
    missing = [name for name in robot.joint_names if name not in columns]
    notes = (*record.notes, *([f"not recorded, and shown at 0: {', '.join(missing)}"] if missing else []))
    return _known(robot, PlayedMotion(record.name, record.t(stream), q, notes))


def _known(robot: Robot, motion: PlayedMotion) -> PlayedMotion:
    """The samples in order of time whose positions are all known."""
    known = motion.t > np.concatenate([[-np.inf], np.maximum.accumulate(motion.t)[:-1]])
    known &= np.isfinite(motion.q).all(axis=1)
    if not known.any():
        raise BagError(f"{motion.name}: no sample has the positions of all joints of {robot.name}")
    t = motion.t[known]
    return motion._replace(t=t - t[0], q=motion.q[known])


_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")
_DIGITS = 3  # of the numbers of sliders


def start_server(host: str, port: int) -> viser.ViserServer:
    """Start the web server, or raise EomDynamicsError."""
    try:
        # The server itself would take another port.
        socket.create_server((host, port), family=socket.getaddrinfo(host, port)[0][0]).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        problem = f"--host {host:.200} --port {port}: {reason}"
        raise EomDynamicsError(f"{problem}; name others, such as --port 0 for any") from None
    rich.get_console().quiet = True  # of the server's own messages
    return viser.ViserServer(host, port, label="eom_dynamics", verbose=False)


def shown_urdf(source: str, robot: Robot, xacro_arguments: Mapping[str, str]) -> tuple[yourdfpy.URDF, list[str]]:
    """The URDF that a robot comes from, with meshes, else the one that is written; and a line for missing meshes."""
    missing, shown = list[str](), None
    logging.getLogger("yourdfpy").setLevel(logging.ERROR)  # it warns of them, too
    if loaded := urdf_of(source, xacro_arguments):
        text, path = loaded

        def mesh(fname: str) -> str:
            """The file of a mesh: of a package that is installed or lies around the URDF, or relative to the URDF."""
            with suppress(LookupError):
                fname = located(fname)
            name = str(yourdfpy.filename_handler_magic(fname, dir=str(path.parent)))
            missing.extend([] if os.path.isfile(name) else [fname])
            return name

        with suppress(Exception):  # of the libraries for meshes, and of joints that are none of the loader's
            urdf = yourdfpy.URDF.load(io.BytesIO(text.encode()), filename_handler=mesh)
            if {*robot.joint_names} <= {*urdf.actuated_joint_names} and urdf.scene.geometry:
                shown = urdf
    lines = [f"{len(missing)} meshes cannot be shown, the first: {missing[0]}"] if missing else []
    return shown or yourdfpy.URDF.load(io.BytesIO(robot_as_urdf(robot).text.encode())), lines


class Viewer:
    """Scene and controls of a robot, and of a recording of it; ``q`` (n,) is shown, by ``sliders`` of the joints."""

    def __init__(
        self, server: viser.ViserServer, robot: Robot, urdf: yourdfpy.URDF, motion: PlayedMotion | None = None
    ) -> None:
        """Show a robot, by a URDF that has its joints, to every browser that asks; and a recording of it."""
        self._robot, self._motion, gui = robot, motion, server.gui
        size, center = urdf.scene.scale or 1.0, urdf.scene.centroid
        up = -robot.gravity / np.linalg.norm(robot.gravity) if np.any(robot.gravity) else np.eye(3)[2]
        axis = int(np.argmax(np.abs(up)))  # that the view is from beside and above
        camera = server.initial_camera
        camera.up, camera.look_at = tuple(up), tuple(center)
        camera.position = tuple(center + 1.5 * size * np.roll([0.9, 0.5, 0.3 * np.sign(up[axis])], axis - 2))
        server.scene.set_up_direction(tuple(up))
        server.scene.add_grid("/grid", 4 * size, 4 * size, plane=("yz", "xz", "xy")[axis], cell_size=size / 4)
        self._urdf = ViserUrdf(server, urdf)
        if motion is not None:
            end = round(float(motion.t[-1]), _DIGITS) or 1.0
            with gui.add_folder(motion.name):
                self.playing: Any = gui.add_checkbox("play", True)
                self.speed: Any = gui.add_dropdown("speed", _SPEEDS, initial_value="1")
                self.time: Any = gui.add_slider("time [s]", 0.0, end, 10.0**-_DIGITS, 0.0)
        self._t = self._shown_time = 0.0
        self.sliders: list[Any] = []
        for joint in robot.independent_joints:
            low, high = joint.limits.lower, joint.limits.upper
            low = low if np.isfinite(low) else min(high, 0.0) - np.pi
            high = high if np.isfinite(high) else max(low, 0.0) + np.pi
            self.sliders.append(gui.add_slider(joint.name, low, high, 10.0**-_DIGITS, min(max(0.0, low), high)))
        self._show(np.array([slider.value for slider in self.sliders]) if motion is None else motion.at(0.0))

    def advance(self, elapsed: float) -> None:
        """Take what the controls say, and play on by ``elapsed``, s."""
        motion, by_hand = self._motion, np.array([slider.value for slider in self.sliders])
        if motion is not None and (moved := self.time.value != self._shown_time) | self.playing.value:
            t = float(self.time.value) if moved else self._t + elapsed * float(self.speed.value)
            self._t = t if t <= motion.t[-1] else 0.0
            self._shown_time = self.time.value = round(self._t, _DIGITS)
            self._show(motion.at(self._t))
        elif np.any(by_hand != self._on_sliders):
            self._show(np.where(by_hand != self._on_sliders, by_hand, self.q))

    def _show(self, q: Array) -> None:
        self.q = q
        values = dict(zip(self._robot.joint_names, q.tolist(), strict=True))
        self._urdf.update_cfg(np.array([values.get(name, 0.0) for name in self._urdf.get_actuated_joint_names()]))
        for slider, value in zip(self.sliders, q.tolist(), strict=True):
            slider.value = round(min(max(value, slider.min), slider.max), _DIGITS)
        self._on_sliders = np.array([slider.value for slider in self.sliders])
