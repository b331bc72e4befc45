# SPDX-License-Identifier: Apache-2.0
"""The simulated robot of a library, eom/plant.hpp: its motion by the equations in Python, and its drives."""

import ctypes

import numpy as np
import pytest
from exported import robot
from exported_loop import ExportedTable
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from eom_dynamics.arrays import Array
from eom_dynamics.elastic import DriveState
from eom_dynamics.simulation import ElasticPlant

NONE = float("nan")


class Plant:
    """Simulated robot, at rest at q."""

    def __init__(self, name: str, q: ArrayLike, kp: float = 0.0, kd: float = 0.0) -> None:
        self._table = table = ExportedTable(robot(name))
        self.arm, self._library = table.arm, table.library
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        gains = np.full((2, m), [[kp], [kd]])
        self.address = self._library.plant_make(table.address, *(row.ctypes.data for row in gains))
        self.state = {
            x: self._vector("state", x, size) for x, size in (("q", n), ("theta", m), ("qd", n), ("thetad", m))
        }
        self.commanded, self.reported = (
            {x: self._vector(whose, f"drive_{x}", m) for x in ("position", "velocity", "effort")}
            for whose in ("commanded", "reported")
        )
        self.state["q"][:] = q
        self._library.plant_rest(self.address)

    def _vector(self, whose: str, name: str, size: int) -> Array:
        address = self._library.plant_vector(self.address, whose.encode(), name.encode())
        return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_double)), (size,))

    def advance(self, time: float, step: float = 1e-4) -> bool:
        return bool(self._library.plant_advance(self.address, time, step))

    def states(self) -> Array:
        return np.concatenate(list(self.state.values()))


@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r", "scissors", "lossy_1"])
def test_motion_under_efforts_is_that_of_the_equations(name: str) -> None:
    """Rigid joints, and all springs with losses; some of them with commanded stiffness."""
    plant = Plant(name, 0.2)
    python = ElasticPlant(plant.arm)
    efforts = plant.commanded["effort"].copy() + np.random.default_rng(1).uniform(-1.0, 1.0, len(plant.arm.motor_names))
    at_rest = plant.states()
    plant.commanded["effort"][:] = efforts
    found = solve_ivp(lambda _, x: python.rate(x, efforts), (0, 0.05), at_rest, rtol=1e-9, atol=1e-11, method="LSODA")
    assert plant.advance(0.05, 2e-5)
    elastic = ~plant.arm.rigid[plant.arm.motor_joint]
    moved, wanted = (python.parts(x) for x in (plant.states(), found.y[:, -1]))
    assert np.max(np.abs(wanted.q - 0.2)) > 1e-4
    for got, expected in zip(moved, wanted, strict=True):
        rows = elastic if len(got) == len(elastic) else slice(None)
        np.testing.assert_allclose(got[rows], expected[rows], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["sea_planar_2r", "iiwa", "drives", "shared"])
def test_it_rests_under_the_efforts_that_it_commands(name: str) -> None:
    """Also in units of the drives, without the efforts that the robot adds itself."""
    plant = Plant(name, 0.3)
    before = plant.states()
    n = plant.arm.robot.n
    motion = np.zeros((5, n))
    motion[0] = 0.3
    command = plant.arm.feedforward(*motion)
    assert np.isnan(plant.commanded["position"]).all() and np.abs(command.motor_effort).max() > 0.1
    sent = plant.arm.drive_command(command, *motion[:3])
    reported = plant.arm.drive_report(DriveState(command.motor_position, command.motor_velocity, command.motor_effort))
    np.testing.assert_allclose(plant.commanded["effort"], sent.effort, rtol=1e-9, atol=1e-11)
    for got, wanted in zip(plant.reported.values(), reported, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    assert plant.advance(0.1)
    np.testing.assert_allclose(plant.states(), before, atol=1e-9)


def test_drives_follow_positions_by_their_gains() -> None:
    plant = Plant("sea_planar_2r", 0.0, kp=50.0, kd=3.0)
    held = plant.commanded["effort"].copy()
    theta = plant.state["theta"].copy()
    short = 1e-7  # too short for motion

    def effort(position: float = NONE, velocity: float = NONE, added: float = 0.0) -> Array:
        plant.commanded["position"][:] = theta + position
        plant.commanded["velocity"][:] = velocity
        plant.commanded["effort"][:] = added
        assert plant.advance(short)
        return plant.reported["effort"].copy()

    np.testing.assert_allclose(effort(0.1, 0.0, 2.0), 2.0 + 50.0 * 0.1, rtol=1e-4)
    np.testing.assert_allclose(effort(0.1, 0.5), 50.0 * 0.1 + 3.0 * 0.5, rtol=1e-4)
    # Difference quotients of the positions, if no velocity is commanded.
    np.testing.assert_allclose(effort(0.1 + 0.4 * short), 50.0 * 0.1 + 3.0 * 0.4, rtol=1e-3)
    # Efforts alone, and the last efforts without a command.
    np.testing.assert_allclose(effort(added=1.5), 1.5)
    np.testing.assert_allclose(effort(added=NONE), 1.5)
    assert np.all(held != 1.5)


def test_motions_that_are_not_finite_are_told_and_robots_without_a_plant_have_none() -> None:
    plant = Plant("sea_planar_2r", 0.0)
    plant.commanded["effort"][:] = 1e300
    assert not plant.advance(0.1)
    table = ExportedTable(robot("carried"))
    gains = np.zeros(2).ctypes.data
    assert table.library.plant_make(table.address, gains, gains) is None
    assert table.library.plant_vector(plant.address, b"state", b"tau") is None
