# SPDX-License-Identifier: Apache-2.0
"""State machine of the control loop: random sequences reach every cell of its table."""

from collections.abc import Callable

import numpy as np
import pytest
import random_scenes
from loop_rig import LoopRig, rest, straight
from random_scenes import Scene

from eom_dynamics.arrays import Array
from eom_dynamics.control.headers import source, table_rows

TEXT = source("state_machine.hpp")
PHASES = [name for name, _ in table_rows(TEXT, "EOM_PHASES")]
CAUSES = [row[0] for row in table_rows(TEXT, "EOM_CAUSES")]
CELLS = {name: (after, cause) for name, _, after, cause, *_ in table_rows(TEXT, "EOM_CELLS")}
TABLE = {event: dict(zip(PHASES, row, strict=True)) for event, *row in table_rows(TEXT, "EOM_TABLE")}
HOME = np.array([0.2, 0.3])

SCENES = 50
"""Random scenes in which all cells but rare ones must have been reached."""

RARE = {("retract", "idle"), ("located", "aiming"), ("located", "holding"), ("break_off", "aiming")}
RARE |= {("mode", phase) for phase in PHASES} | {("loss_deactivate", phase) for phase in PHASES}
"""Cells that need more scenes; the soak test runs enough of them."""

RELOCATED = {("motion", "following")}
"""Cell with a test of its own: random scenes measure no velocity of an arm that was moved."""


def visits(rig: LoopRig) -> Array:
    """How often each event has come in each state."""
    count = rig.library.loop_visits
    return np.array([[count(rig.address, event, phase) for phase in range(len(PHASES))] for event in range(len(TABLE))])


def report(counts: Array) -> str:
    lines = [f"{'':18}" + "".join(f"{phase:>11}" for phase in PHASES)]
    lines += [f"{event:18}" + "".join(f"{x:11,}" for x in row) for event, row in zip(TABLE, counts, strict=True)]
    return "\n".join(lines)


def cells(counts: Array, reached: bool) -> set[tuple[str, str]]:
    """Event and state of the cells that have been reached, or not."""
    events = list(TABLE)
    return {(events[event], PHASES[phase]) for event, phase in np.argwhere((counts > 0) == reached)}


class Walk(Scene):
    """A scene with the inputs of a host, and mostly those that have not come in the present state."""

    missing: frozenset[tuple[str, str]] = frozenset()

    def _input(self, kind: str = "") -> None:
        phase = PHASES[int(self.rig.number("phase"))]
        ways = [name for event, name in WAYS.items() if (event, phase) in self.missing and self._comes(event)]
        if ways and self.rng.random() < 0.5:
            WAYS_OF_HOSTS.get(way := str(self.rng.choice(ways)), random_scenes.INPUTS.get(way))(self)
        else:
            super()._input(kind)

    def finds(self) -> bool:
        """Whether a cell that is missing may be reached, with its arm and settings."""
        return any(self._comes(event) for event, _ in self.missing)

    def _comes(self, event: str) -> bool:
        """Whether an event may come with the arm and the settings of the scene."""
        chosen = self.settings.others
        if event == "retract":
            return chosen.get("on_contact") == "retract"
        if event.startswith("loss"):
            policy = event.removeprefix("loss").removeprefix("_") or "none"
            return bool(chosen["on_setpoint_loss"] == policy)
        return event != "contact" or self.touches


def _short(scene: Scene) -> None:
    """A trajectory that soon comes to its end."""
    scene._stream = None
    q = scene.q
    scene.rig.trajectory(straight([0, 0.15], [q, q + 1e-3 * scene.rng.normal(size=len(q))]))


def _moving(scene: Scene) -> None:
    """A restart of an arm that moves."""
    rig, scene._stream = scene.rig, None
    rig.now += 10**9
    q = np.clip(scene.q, scene.arm.oracle.lower, scene.arm.oracle.upper)
    rig.loop.measure(np.stack([q, np.full(rig.n, 0.05)]))
    rig.restart()


def _located(scene: Scene) -> None:
    """An arm that is moved in a pause of the host, and measured there in the next cycle."""
    scene.moved()
    scene._at = scene._at + scene._offset  # else it counts as found where it was
    scene._jump(1.0)


def _complying(scene: Scene) -> None:
    """From impedance to position control, where springs may have given way."""
    scene._mode(0 if scene.rig.number("mode") else 1)


WAYS_OF_HOSTS = {
    "halt": lambda scene: scene.rig.loop.act("halt"),
    "short": _short,
    "moving": _moving,
    "located": _located,
    "complying": _complying,
}
WAYS = {"end": "short", "motion": "moving", "mode": "complying", "hands": "mode gravity", "break_off": "clock back"}
WAYS |= {"restart_soon": "restart soon", "loss_hold": "loss", "loss_deactivate": "loss"}
WAYS |= {"retract": "contact", "empty": "empty trajectory"}
WAYS |= {name: name for name in ("located", "halt", "loss", "contact", "restart", "payload", "pause", "resume", "stop")}
WAYS |= {name: name for name in ("setpoint", "target", "trajectory")}
"""Inputs by the event that they may lead to."""


def test_every_event_is_decided_in_every_state() -> None:
    assert list(TABLE) == [name for name, _ in table_rows(TEXT, "EOM_EVENTS")]
    assert {cell for row in TABLE.values() for cell in row.values()} == set(CELLS)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("scenes", [SCENES, pytest.param(2000, marks=pytest.mark.soak)])
def test_random_sequences_reach_every_cell(scenes: int) -> None:
    """All that may come comes, and nothing else."""
    possible = {(event, phase) for event, row in TABLE.items() for phase, cell in row.items() if cell != "none"}
    possible -= RELOCATED
    counts = np.zeros((len(TABLE), len(PHASES)), dtype=int)
    seed = done = 0
    needed = possible - (RARE if scenes == SCENES else set())
    while done < scenes and not needed <= cells(counts, reached=True):
        walk = Walk(seed)
        walk.missing = frozenset(possible - cells(counts, reached=True))
        if walk.finds():
            walk.run()
            counts += visits(walk.rig)
            done += 1
        seed += 1
    print(f"{done} scenes of {seed}", report(counts), sep="\n")
    reached = cells(counts, reached=True)
    assert reached <= possible | RELOCATED
    assert needed <= reached


HELD = {"setpoint_timeout": 0.05, "on_setpoint_loss": "hold", "limits": "ignore", "jump_check": "ignore"}


def _led(phase: str, **settings: object) -> LoopRig:
    """A loop in a state."""
    rig = LoopRig("planar_2r", targets={"velocity": 2.0, "acceleration": 10.0}, **(HELD | settings))
    rig.restart(HOME)
    rig.cycles(3)
    if phase != "idle":
        rig.cycles(3, rest(HOME))
    if phase in ("playing", "stopping"):
        rig.trajectory(straight([0, 1], [HOME, HOME + 0.3]))
        rig.cycles(300)
    if phase == "aiming":
        rig.target(HOME + 0.3)
        rig.cycles(100)
    if phase == "stopping":
        rig.stop()
        rig.cycles(3)
    if phase == "holding":
        rig.stop()
        rig.cycles(3)
    assert state(rig)[0] == phase
    return rig


def state(rig: LoopRig) -> tuple[str, str]:
    return PHASES[int(rig.number("phase"))], CAUSES[int(rig.number("cause"))]


GIVEN: dict[str, Callable[[LoopRig], None]] = {
    "setpoint": lambda rig: rig.refer(rest(rig.q)),
    "target": lambda rig: rig.target(rig.q + 0.1),
    "trajectory": lambda rig: rig.trajectory(straight([0, 1], [rig.q, rig.q + 0.1])),
    "empty": LoopRig.empty_trajectory,
    **{name: lambda rig, name=name: rig.loop.act(name) for name in ("pause", "resume", "stop", "halt")},
    "loss_hold": lambda rig: rig.loop.act("lose"),
}


@pytest.mark.parametrize("event", GIVEN)
@pytest.mark.parametrize("phase", PHASES)
def test_the_next_state_is_that_of_the_table(phase: str, event: str) -> None:
    """In a case where conditions of cells are met, but that a stop of a motion is not over."""
    rig = _led(phase)
    before = state(rig)
    GIVEN[event](rig)
    rig.run()
    cell = TABLE[event][phase]
    amid = event == "setpoint" and phase in ("stopping", "aiming")
    refused = cell in ("stay", "busy", "none") or amid
    wanted = before if refused else CELLS[cell]
    if wanted[0] == "stopping" and phase in ("idle", "following"):
        rig.cycles(1000)
        wanted = "holding", wanted[1]  # as the arm rests
    assert state(rig) == wanted


def test_an_arm_that_is_located_in_motion_is_brought_to_rest() -> None:
    """It was held at a constant position with the measured velocity."""
    rig = _led("following")
    rig.now += 10**9
    rig.loop.measure(np.stack([rig.q + 0.2, np.full(rig.n, 0.05)]))
    assert not rig.loop.locate(rig.now)
    assert state(rig)[0] == "stopping"
