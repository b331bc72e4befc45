# SPDX-License-Identifier: Apache-2.0
"""Ways to the efforts: results and errors."""

from __future__ import annotations

import numpy as np
import pytest
from chains import fixed_case
from random_states import RandomStates
from ways import Way, closed_form, own_backends

# mixed_chain: a revolute, a prismatic and a helical joint about axes of their own; planar_2r: along z.
ROBOTS = ("iiwa", "mixed_chain", "planar_2r")


@pytest.mark.parametrize("name", ROBOTS)
def test_every_way_agrees_with_the_closed_form(name: str) -> None:
    robot = fixed_case(name, 0).robot
    states = RandomStates(robot, 5)
    ways = own_backends(robot, states) | {"closed form": closed_form(robot, states)}
    assert "native" in ways
    for way in ways.values():
        errors = way.errors(states)
        assert len(errors) == 3 and max(errors) < 1e-12


def test_an_error_is_relative_to_the_largest_effort() -> None:
    states = RandomStates(fixed_case("planar_2r", 0).robot, 3)
    wrong = Way(lambda k: states.efforts[:, k] * [[1.0], [1.5], [1.0]], [(k,) for k in range(3)])
    np.testing.assert_allclose(wrong.errors(states), [0.0, 0.5, 0.0])
