# SPDX-License-Identifier: Apache-2.0
"""Numbers that are not finite: each backend finds them anywhere in a batch, and the error names them."""

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import Dynamics, StateError
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.states import STATE_NAMES

# A multiple of the number of lanes, some more, and enough states for several threads.
COUNTS = (8, 21, 9001)

Array = np.ndarray


@pytest.fixture(scope="module", params=KERNELS)
def dynamics(request: pytest.FixtureRequest) -> Dynamics:
    if request.param == "casadi":
        pytest.importorskip("casadi", reason="CasADi is not installed")
    return Dynamics(fixed_case("mixed_chain", 0).robot, backend=request.param)


def states(count: int) -> list[Array]:
    return list(np.random.default_rng(0).uniform(-2, 2, (5, count, 4)))


@pytest.mark.parametrize("count", COUNTS)
def test_in_a_state(dynamics: Dynamics, count: int) -> None:
    for which, name in enumerate(STATE_NAMES):
        for row, value in ((0, np.nan), (7, np.inf), (count // 2, -np.inf), (count - 1, np.nan)):
            bad = states(count)
            bad[which][row, 3] = value
            with pytest.raises(StateError) as error:
                dynamics.inverse_dynamics(*bad)
            assert str(error.value) == f"{name} must be finite; entry [{row}, 3] is {value}"


@pytest.mark.parametrize("count", COUNTS)
def test_in_a_wrench(dynamics: Dynamics, count: int) -> None:
    for wrench in (np.full(6, 1.0), np.full((count, 6), 1.0)):
        wrench[..., 5] = np.nan
        with pytest.raises(StateError, match="wrench Wd must be finite"):
            dynamics.inverse_dynamics(*states(count), wrench=(np.zeros(6), wrench))


def test_results_overwrite_the_states(dynamics: Dynamics) -> None:
    bad = states(21)
    bad[0][19, 1] = np.nan
    with pytest.raises(StateError, match=r"^q must be finite; entry \[19, 1\] is nan"):
        dynamics.inverse_dynamics(*bad, out=bad[:3])


def test_the_largest_numbers_are_finite(dynamics: Dynamics) -> None:
    large = states(21)
    large[4][5] = np.finfo(float).max
    with np.errstate(all="ignore"):
        taudd = dynamics.inverse_dynamics(*large)[2]
    assert np.all(np.isfinite(np.delete(taudd, 5, axis=0)))
