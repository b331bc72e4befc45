# SPDX-License-Identifier: Apache-2.0
"""The iiwa on the paper's motion without feedback, with springs of every kind, in an independent simulation.

``make bench`` (section ``open_loop``) runs every kind for 5 s; here are three arms that have all kinds.
"""

import pytest
from open_loop_cases import CASES, Feedforward, all_memoryless, link_errors

ARMS = {
    "one kind a joint": all_memoryless,
    "damped": CASES["damped"],
    "pairs, coupled": CASES["pairs, coupled springs, differential, friction"],
}


@pytest.mark.parametrize("name", ARMS)
def test_links_stay_on_the_trajectory_by_flatness_alone(name: str) -> None:
    """To the error of the integrator, which the unstable open-loop arm amplifies."""
    case = ARMS[name]()
    assert max(link_errors(Feedforward(case), 0.1).values()) < 1e-10
    assert max(link_errors(Feedforward(case, rigid=True), 0.1).values()) > 1e-5
