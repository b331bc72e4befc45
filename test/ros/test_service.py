# SPDX-License-Identifier: Apache-2.0
"""Service inverse_dynamics of a node."""

import numpy as np
import pytest
from iiwa import NAMES, N, assert_close, command
from node_client import message_fields

from eom_dynamics.messages.fields import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS

RATES = ("", "_rate", "_acceleration")
MATRICES = [f"{name}{rate}" for name in ("mass_matrix", "coriolis_matrix") for rate in RATES]
VECTORS = [f"{name}{rate}" for name in ("gravity_effort", "external_effort") for rate in RATES]


@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
@pytest.mark.parametrize("matrices", [False, True], ids=["efforts", "matrices"])
def test_every_number_is_that_of_the_closed_form(iiwa, rng, shuffled, matrices):
    state, wrench = rng.uniform(-2, 2, (5, N)), rng.uniform(-20, 20, (3, 6))
    order = rng.permutation(N) if shuffled else np.arange(N)
    answer = iiwa.inverse_dynamics(
        joint_names=[NAMES[i] for i in order],
        include_matrices=matrices,
        **dict(zip(STATE_FIELDS, state[:, order], strict=True)),
        **dict(zip(WRENCH_FIELDS, wrench, strict=True)),
    )
    assert (answer.success, answer.message) == (True, "")
    assert answer.joint_names == [NAMES[i] for i in order]

    wanted, equations = command(state, wrench)
    for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
        assert_close(getattr(answer, name), values[order])

    if not matrices:
        assert all(len(getattr(answer, name)) == 0 for name in (*MATRICES, *VECTORS))
        return
    for k, rate in enumerate(RATES):
        for name, matrix in (("mass_matrix", equations.M[k]), ("coriolis_matrix", equations.C[k])):
            # Row after row, rows and columns both in the order of the request.
            assert_close(getattr(answer, name + rate), [matrix[i, j] for i in order for j in order])
        assert_close(getattr(answer, f"gravity_effort{rate}"), equations.gravity[k][order])
        assert_close(getattr(answer, f"external_effort{rate}"), equations.external[k][order])


def test_jerk_and_snap_may_be_left_out(iiwa, rng):
    q, qd, qdd = rng.uniform(-2, 2, (3, N))
    answer = iiwa.inverse_dynamics(position=q, velocity=qd, acceleration=qdd)
    assert answer.success, answer.message
    assert answer.joint_names == NAMES
    wanted, _ = command((q, qd, qdd, *np.zeros((2, N))))
    for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
        assert_close(getattr(answer, name), values)


GOOD = {name: np.full(N, 0.1) for name in STATE_FIELDS}
# One of each kind; test/messages has them all.
REFUSED = {
    "nothing": ({}, "position has 0 entries, must have 7"),
    "jerk short": ({**GOOD, "jerk": np.zeros(3)}, "jerk has 3 entries, must have 7 or none"),
    "overflow": ({**GOOD, "velocity": np.full(N, 1e200)}, "numbers too large: effort"),
}


@pytest.mark.parametrize(("fields", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refused_request_says_why_and_stops_nothing(iiwa, fields, reason):
    answered = len(iiwa.feedforward)
    answer = iiwa.inverse_dynamics(include_matrices=True, **fields)
    assert not answer.success
    assert answer.message.startswith(reason), answer.message
    for name in (*COMMAND_FIELDS, *MATRICES, *VECTORS):
        assert len(getattr(answer, name)) == 0
    assert iiwa.inverse_dynamics(**GOOD).success
    iiwa.answers_to(iiwa.publish(**GOOD))
    assert len(iiwa.feedforward) == answered + 1
    assert "Traceback" not in iiwa.process.log


def test_requests_that_come_at_once_are_all_answered(iiwa):
    from eom_dynamics.srv import ComputeInverseDynamics

    client = iiwa.client(ComputeInverseDynamics, "inverse_dynamics", depth=1000)
    request = ComputeInverseDynamics.Request(**message_fields(GOOD))
    futures = [client.call_async(request) for _ in range(200)]
    iiwa.wait(lambda: all(future.done() for future in futures), "200 answers")
    assert all(future.result().success for future in futures)


def test_requests_are_not_counted_as_setpoints(iiwa):
    _, _, before = iiwa.next_diagnostics()
    iiwa.inverse_dynamics(**GOOD)
    iiwa.inverse_dynamics()
    _, _, after = iiwa.next_diagnostics()
    for count in ("received", "published", "refused", "ignored while not active"):
        assert after[count] == before[count]
