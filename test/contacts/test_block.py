# SPDX-License-Identifier: Apache-2.0
"""A block on a table that is pushed: it sticks, tilts and slips as elementary statics and Coulomb's law say."""

from functools import cache

import numpy as np
import pytest

from eom_dynamics import Dynamics, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.contacts import ContactDynamics, SurfaceContact

MASS, FRICTION, HALF_LENGTH, HALF_WIDTH, HALF_HEIGHT = 2.0, 0.4, 0.15, 0.1, 0.05
WEIGHT = MASS * 9.80665

URDF = f"""<robot name="block"><link name="table"/><link name="block"><inertial>
<origin xyz="0 0 {HALF_HEIGHT}"/><mass value="{MASS}"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial></link>
<joint name="free" type="floating"><parent link="table"/><child link="block"/></joint></robot>"""


@cache
def block() -> ContactDynamics:
    """A block with joint variables x, y, z, yaw, pitch, roll of the centre of its underside."""
    robot: Robot = load_robot(URDF)
    bottom = SurfaceContact.rectangle("bottom", "block", FRICTION, (HALF_LENGTH, HALF_WIDTH))
    return ContactDynamics(Dynamics(robot, backend="numpy"), [bottom])


def push(force: float, height: float, angle: float = 0.0) -> Array:
    """Efforts of a horizontal force, at a height above the table, in a direction in its plane."""
    fx, fy = force * np.cos(angle), force * np.sin(angle)
    return np.array([fx, fy, 0.0, 0.0, height * fx, -height * fy])


STILL = np.zeros(6)


def test_it_slips_at_the_friction_limit() -> None:
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    for share in (0.999, 1.001):
        found = block().forward_dynamics(STILL, STILL, push(share * FRICTION * WEIGHT, 0.0, 0.3))
        margin = block().margins(found.forces, faces=None)["bottom"]
        assert margin == pytest.approx((1 - share) * WEIGHT, abs=1e-5)


@pytest.mark.parametrize("direction", [0.0, 0.7, 2.5])
def test_it_slides_under_a_strong_push(direction: float) -> None:
    force, height = 2.0 * FRICTION * WEIGHT, 0.03
    along = np.array([np.cos(direction), np.sin(direction)])
    found = block().forward_dynamics(STILL, STILL, push(force, height, direction), sliding={"bottom": along})
    expected = force / MASS - FRICTION * 9.80665
    assert found.acceleration == pytest.approx([*(expected * along), 0, 0, 0, 0], abs=1e-12)
    wrench = found.forces["bottom"]
    assert wrench[3:] == pytest.approx([*(-FRICTION * WEIGHT * along), WEIGHT])
    # Moments about the centre of mass: push and friction are held by the centre of pressure.
    ahead = (force * (height - HALF_HEIGHT) + FRICTION * WEIGHT * HALF_HEIGHT) / WEIGHT
    assert np.array([-wrench[1], wrench[0]]) / WEIGHT == pytest.approx(ahead * along)
    assert wrench[2] == pytest.approx(0.0, abs=1e-12)  # friction acts at the centre of pressure, along the motion


def test_it_lands() -> None:
    """Falling flat, it stops, and the impulse is m v; on a corner, energy is left."""
    falling = np.array([0.3, 0, -1.5, 0, 0, 0])
    impact = block().touchdown(STILL, falling)
    assert impact.rates == pytest.approx(STILL, abs=1e-14)
    assert impact.impulses["bottom"][3:] == pytest.approx([-0.3 * MASS, 0, 1.5 * MASS])
    assert impact.energy_loss == pytest.approx(0.5 * MASS * (0.3**2 + 1.5**2))
    corner = ContactDynamics(Dynamics(block().robot, backend="numpy"), block().contacts[0].points()[:1])
    assert 0 < corner.touchdown(STILL, falling).energy_loss < impact.energy_loss
