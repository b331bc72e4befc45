# SPDX-License-Identifier: Apache-2.0
"""Scene and controls of the viewer."""

from __future__ import annotations

import html
import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
import rich
import trimesh
import viser

from ... import lie
from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import TOLERANCE, bounds
from ...elastic.limit_violations import beyond, range_ratio
from ...exceptions import EomDynamicsError
from ...kinematics.forward import body_poses
from ...units import unit
from .motion import ArmState, PlayedMotion, at_rest, elastic_joints
from .solids import Colour, Solid, dial, hub, points_of, rods, size_of

NEAR = 0.8
"""Share of a limit above which it is shown as near."""

_NEAR_COLOUR, _BEYOND_COLOUR = (245, 158, 11), (220, 38, 38)
_HUB_COLOUR, _MASS_COLOUR, _MOTOR_COLOUR, _HAND_COLOUR = (90, 100, 120), (40, 40, 40), (37, 99, 235), (20, 20, 20)

_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")

# Of numbers in sliders, and the step of these.
_DIGITS, _STEP = 3, 1e-3

# Updates of the scene from one update of the table of numbers to the next while a recording plays.
_TABLE_EVERY = 5

# Configurations of a recording that the camera is to see.
_SEEN = 20

# Cosine between axes above which they count as parallel.
_PARALLEL = 0.99

# rad or m: range of a slider on each side of the first position where a joint has no limit.
_UNLIMITED = 3.14


class ViewerError(EomDynamicsError):
    """The viewer cannot listen."""


def start_server(host: str, port: int) -> viser.ViserServer:
    """Start the web server.

    Raises:
        ViewerError: the port is in use, or the host is not one of this machine.
    """
    try:
        # The server itself would take another port.
        socket.create_server((host, port), family=socket.getaddrinfo(host, port)[0][0]).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        raise ViewerError(
            f"--host {host:.200} --port {port}: {reason}; name others, such as --port 0 for any"
        ) from None
    rich.get_console().quiet = True  # of the server's own messages
    return viser.ViserServer(host, port, label="eom_dynamics", verbose=False)


class Viewer:
    """Scene and controls of an arm, and of a recording of it.

    Attributes:
        state: that is shown.
        sliders: of the joints.
        time: slider of the recording, if there is one.
        table: of the state, as HTML.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        arm: ElasticArm,
        visuals: Sequence[Solid] = (),
        motion: PlayedMotion | None = None,
    ) -> None:
        """Build the scene.

        Args:
            server: shows it to every browser that asks.
            arm: the arm.
            visuals: solids of bodies; those without any are shown as rods.
            motion: the recording to play.
        """
        self._server, self._arm, self._motion = server, arm, motion
        robot = arm.robot
        self._bounds, self._elastic = bounds(arm), elastic_joints(arm)
        lower, upper = self._bounds.lower[list(robot.independent)], self._bounds.upper[list(robot.independent)]
        self.state = at_rest(arm, _start(lower, upper)) if motion is None else motion.at(0.0)
        self._size = size_of(robot, self.state.q)
        self._up = _upwards(robot.gravity)
        seen = self.state.q[np.newaxis] if motion is None else motion.states.q[:: 1 + len(motion.t) // _SEEN]
        self._points = np.concatenate([points_of(robot, q) for q in seen])
        if motion is None:  # the arm may be turned to the other side of the base
            heights = self._points @ self._up
            self._points = np.concatenate([self._points, 2 * np.outer(heights, self._up) - self._points])
        self._updates = 0
        self._build_scene(visuals)
        self._build_controls(lower, upper)
        self._set_camera()
        self._draw()

    def advance(self, elapsed: float) -> None:
        """Take what the controls say, play on, and show it.

        Args:
            elapsed: time since the last call, s.
        """
        self._updates += 1
        state = self._wanted(elapsed)
        if state is self.state and self._settings() == self._shown_settings:
            return
        self.state = state
        with self._server.atomic():
            self._draw()

    def _wanted(self, elapsed: float) -> ArmState:
        """The state to show next."""
        motion = self._motion
        if motion is not None:
            if self.time.value != self._shown_time:
                return self._state_at(float(self.time.value))
            if self._playing:
                t = self._t + elapsed * float(self._speed.value)
                return self._state_at(t if t <= motion.t[-1] else 0.0)
        q = np.array([slider.value for slider in self.sliders])
        moved = q != self._shown_q
        return at_rest(self._arm, np.where(moved, q, self.state.q)) if moved.any() else self.state

    def _state_at(self, t: float) -> ArmState:
        assert self._motion is not None
        self._t = t
        self.time.value = self._shown_time = round(t, _DIGITS)
        return self._motion.at(t)

    # --- Scene --------------------------------------------------------------------------------

    def _build_scene(self, visuals: Sequence[Solid]) -> None:
        robot, size, scene = self._arm.robot, self._size, self._server.scene
        self._frames = [
            scene.add_frame(f"/body{i}", axes_length=0.12 * size, axes_radius=0.004 * size)
            for i in range(-1, len(robot.joints))
        ]
        shown = {solid.body for solid in visuals}
        solids = [*visuals, *(solid for solid in rods(robot, size) if solid.body not in shown)]
        self._links = [self._add(f"/body{x.body}/link{k}", x) for k, x in enumerate(solids)]
        self._coloured = [(solid.body, link, solid.colour) for solid, link in zip(solids, self._links, strict=True)]
        self._masses: list[Any] = []
        self._names: list[Any] = []
        heaviest = max(joint.mass for joint in robot.joints) or 1.0
        for i, joint in enumerate(robot.joints):
            if i not in shown:
                solid = Solid(i, hub(joint, size), _HUB_COLOUR)
                self._coloured.append((i, self._add(f"/body{i}/hub", solid), solid.colour))
            self._names.append(scene.add_label(f"/body{i}/name", joint.name))
            if joint.mass > 0:
                radius = 0.05 * size * np.cbrt(joint.mass / heaviest)
                at = tuple(joint.center_of_mass)
                # Seen through the link that it is in.
                self._masses.append(
                    scene.add_icosphere(f"/body{i}/mass", radius, _MASS_COLOUR, position=at, opacity=0.6)
                )
        self._motors: dict[int, Any] = {}
        for k in np.flatnonzero(self._elastic).tolist():
            i = robot.independent[k]
            motor, hand = dial(robot.joints[i], size)
            self._motors[k] = scene.add_frame(f"/motor{k}", show_axes=False)
            self._add(f"/motor{k}/dial", Solid(i, motor, _MOTOR_COLOUR), opacity=0.45)
            self._add(f"/body{i}/hand", Solid(i, hand, _HAND_COLOUR))
        # Below the joints, which have no meshes.
        low = (float(np.min(self._points @ self._up)) - (0.0 if visuals else 0.12 * size)) * self._up
        ground = _wxyz(lie.quaternion(_from_z(self._up)))
        wide = 4.0 * size
        scene.add_grid("/grid", wide, wide, cell_size=0.25 * size, section_size=size, wxyz=ground, position=low)
        scene.set_up_direction(tuple(self._up))

    def _add(self, name: str, solid: Solid, opacity: float | None = None) -> Any:
        mesh = solid.mesh
        return self._server.scene.add_mesh_simple(
            name, mesh.vertices, mesh.faces, color=solid.colour, opacity=opacity, side="double"
        )

    def _set_camera(self) -> None:
        """Look along the axes of a planar arm, and at others from the front and above."""
        joints, poses, up = self._arm.robot.joints, body_poses(self._arm.robot, self.state.q), self._up
        axes = np.array([pose[:3, :3] @ joint.axis for pose, joint in zip(poses, joints, strict=True)])
        direction = _from_z(up) @ np.array([0.9, 0.5, 0.3])
        if np.all(np.abs(axes @ axes[0]) > _PARALLEL):
            # Not straight along the camera's own upward direction.
            direction = axes[0] + (-_from_z(up)[:, 1] if abs(axes[0] @ up) > _PARALLEL else 0.15 * up)
        low, high = np.min(self._points, axis=0), np.max(self._points, axis=0)
        distance = max(0.8 * float(np.linalg.norm(high - low)), 1.2 * self._size)
        camera = self._server.initial_camera
        camera.up, camera.look_at = tuple(up), tuple((low + high) / 2)
        camera.position = tuple((low + high) / 2 + distance * direction / np.linalg.norm(direction))

    # --- Controls -----------------------------------------------------------------------------

    def _build_controls(self, lower: Array, upper: Array) -> None:
        gui, robot, motion = self._server.gui, self._arm.robot, self._motion
        gui.configure_theme(control_width="large", show_share_button=False)
        self._playing, self._t, self._shown_time = motion is not None, 0.0, 0.0
        if motion is not None:
            end = round(float(motion.t[-1]), _DIGITS)
            with gui.add_folder(motion.name):
                self._button = gui.add_button("Pause")
                self._button.on_click(lambda _: self.play(not self._playing))
                self._speed = gui.add_dropdown("speed", _SPEEDS, initial_value="1")
                self.time: Any = gui.add_slider("time [s]", 0.0, end or 1.0, _STEP, 0.0)
        with gui.add_folder("show"):
            self._options: list[Any] = [
                gui.add_checkbox("links", True),
                gui.add_checkbox("frames", False),
                gui.add_checkbox("centres of mass", True),
            ]
            if self._motors:
                self._options.append(gui.add_slider("deflection ×", 1.0, 200.0, 1.0, 20.0))
        self.table = gui.add_html("")
        q = self.state.q
        recorded = q[np.newaxis] if motion is None else motion.states.q
        with gui.add_folder("joints"):
            self.sliders: list[Any] = []
            for k, joint in enumerate(robot.independent_joints):
                low = lower[k] if np.isfinite(lower[k]) else q[k] - _UNLIMITED
                high = upper[k] if np.isfinite(upper[k]) else q[k] + _UNLIMITED
                low, high = float(min(low, recorded[:, k].min())), float(max(high, recorded[:, k].max()))
                self.sliders.append(gui.add_slider(joint.name, low, high, _STEP, float(q[k])))

    def play(self, playing: bool) -> None:
        """Play the recording, or pause."""
        self._playing, self._button.label = playing, "Pause" if playing else "Play"

    def _settings(self) -> list[Any]:
        """Whether a recording plays, and what is shown of the state."""
        return [self._playing, *(control.value for control in self._options)]

    # --- Drawing ------------------------------------------------------------------------------

    def _draw(self) -> None:
        robot, state = self._arm.robot, self.state
        self._shown_settings = self._settings()
        _, links, frames, masses, *more = self._shown_settings
        poses = [np.eye(4), *body_poses(robot, state.q)]
        for frame, pose in zip(self._frames, poses, strict=True):
            _place(frame, pose)
            frame.show_axes = frames
        for handles, visible in ((self._links, links), (self._names, frames), (self._masses, masses)):
            for handle in handles:
                handle.visible = visible
        for k, motor in self._motors.items():
            i = robot.independent[k]
            _place(motor, poses[i + 1] @ lie.exp(robot.joints[i].screw, more[0] * state.deflection[k]))
        used = self._utilization()
        worst = np.max(list(used.values()), axis=0)
        for body, handle, colour in self._coloured:
            wanted = _limit_colour(worst[body] if body >= 0 else 0.0) or colour
            if handle.color != wanted:
                handle.color = wanted
        self._shown_q = [round(x, _DIGITS) for x in state.q.tolist()]
        for slider, x in zip(self.sliders, self._shown_q, strict=True):
            if slider.value != x:
                slider.value = x
        if not self._playing or self._updates % _TABLE_EVERY == 0:
            self.table.content = self._numbers(used)

    def _utilization(self) -> dict[str, Array]:
        """Share of each limit that the state uses, > 1 beyond it, by quantity and joint; 0 without a limit."""
        robot, limits, state = self._arm.robot, self._bounds, self.state
        E, e = robot.coupling
        efforts, most = np.zeros(len(robot.joints)), np.full(len(robot.joints), np.inf)
        efforts[list(robot.independent)], most[list(robot.independent)] = state.tau, limits.largest["effort"]
        fastest = limits.largest["velocity"]
        return {
            "position": _shares(E @ state.q + e, limits.lower, limits.upper),
            "velocity": _shares(E @ state.qd, -fastest, fastest),
            "effort": _shares(efforts, -most, most),
        }

    def _numbers(self, used: dict[str, Array]) -> str:
        """The state as a table, with limits in colour."""
        state, rows = self.state, []
        for k, joint in enumerate(self._arm.robot.independent_joints):
            i = self._arm.robot.independent[k]
            cells = [f"<td>{html.escape(joint.name)}</td>"]
            for quantity, x in zip(used, state[:3], strict=True):
                colour = _limit_colour(float(used[quantity][i]))
                style = "" if colour is None else f' style="background:rgb{colour};color:white"'
                cells.append(f"<td{style}>{x[k]:.3f} {unit(quantity, joint.type)}</td>")
            if self._motors:
                milli = (
                    "–" if k not in self._motors else f"{1e3 * state.deflection[k]:.2f} m{unit('position', joint.type)}"
                )
                cells.append(f"<td>{milli}</td>")
            rows.append(f"<tr>{''.join(cells)}</tr>")
        head = "<th></th>" + "".join(f"<th>{name}</th>" for name in (*used, *(["deflection"] if self._motors else [])))
        near, past = (f'<span style="color:rgb{x}">&#9632;</span>' for x in (_NEAR_COLOUR, _BEYOND_COLOUR))
        return (
            '<div style="padding:0 1em;font-size:0.75em;white-space:nowrap"><table style="width:100%;text-align:right">'
            f"<tr>{head}</tr>{''.join(rows)}</table>{near} above {NEAR:.0%} of a limit {past} beyond it</div>"
        )


def _start(lower: Array, upper: Array) -> Array:
    """Zero, or what is nearest to it away from the ends of a joint's range."""
    margin = np.where(np.isfinite(upper - lower), (1 - NEAR) / 2 * (upper - lower), 0.0)
    return np.clip(0.0, lower + margin, upper - margin)


def _limit_colour(share: float) -> Colour | None:
    if share > 1 + TOLERANCE:
        return _BEYOND_COLOUR
    return _NEAR_COLOUR if share > NEAR else None


def _shares(values: Array, lower: Array, upper: Array) -> Array:
    """Share of each range that each value uses."""
    distances = beyond(values, lower, upper)
    return np.array(
        [range_ratio(*x) if np.isfinite(x[1:]).any() else 0.0 for x in zip(distances, lower, upper, strict=True)]
    )


def _place(handle: Any, pose: Array) -> None:
    handle.position, handle.wxyz = pose[:3, 3], _wxyz(lie.quaternion(pose[:3, :3]))


def _wxyz(xyzw: Array) -> Array:
    return np.roll(xyzw, 1)


def _upwards(gravity: Array) -> Array:
    """Unit vector (3,) against gravity; z without any."""
    length = float(np.linalg.norm(gravity))
    return -gravity / length if length else np.array([0.0, 0.0, 1.0])


def _from_z(direction: Array) -> Array:
    """A rotation (3, 3) of z to a unit vector."""
    turned: Array = trimesh.geometry.align_vectors([0.0, 0.0, 1.0], direction)
    return turned[:3, :3]
