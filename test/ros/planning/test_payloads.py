# SPDX-License-Identifier: Apache-2.0
"""Arms with payloads: equal to a robot with the payload in its file, without new code for each payload."""

from types import SimpleNamespace

import numpy as np
from tool_messages import payload_message

import eom_dynamics as eom
from eom_dynamics.codegen.recipe import Recipe
from eom_dynamics.robot.payload import payload_parameters, with_parameters
from eom_dynamics.ros.loaded_arm import loaded_arm
from eom_dynamics.ros.planning.services import CarriedPayloads


def test_a_new_payload_needs_no_new_program(rng, monkeypatch):
    robot = eom.load_robot("sea_planar_2r")
    arm = eom.ElasticArm(robot, rotor_model="complete")
    state = rng.uniform(-1, 1, (5, 2))

    def answers(payload):
        loaded = loaded_arm(arm, payload_parameters(robot, [payload]))
        return loaded, loaded.feedforward(*state)

    answers(eom.Payload(1.0))
    with monkeypatch.context() as no_programs:
        no_programs.delattr(Recipe, "__call__")
        payload = eom.Payload(2.0, [0.1, 0.0, 0.05], [0.01, 0.0, 0.0, 0.02, 0.0, 0.03])
        loaded, found = answers(payload)
    wanted = eom.ElasticArm(with_parameters(robot, payload_parameters(robot, [payload])), rotor_model="complete")
    expected = wanted.feedforward(*state)
    # Rounding of some hundred operations.
    np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-12, atol=1e-12)
    along = [
        each.feedforward_along(state[:, np.newaxis], state[:, np.newaxis, np.newaxis]) for each in (loaded, wanted)
    ]
    np.testing.assert_allclose(np.stack(along[0]), np.stack(along[1]), rtol=1e-10, atol=1e-10)
    M = [each.dynamics.mass_matrix(state[0]) for each in (loaded, wanted)]
    np.testing.assert_allclose(*M, rtol=1e-12)


def test_payloads_wait_for_the_robot_and_are_forgotten_with_it():
    said = []
    node = SimpleNamespace(
        create_subscription=lambda *_, **__: None,
        get_logger=lambda: SimpleNamespace(warning=said.append),
        refuse=lambda what, reason: said.append(f"{what} refused: {reason}"),
    )
    carried = CarriedPayloads(node)
    for mass in (1.0, 2.0):
        carried._receive(payload_message(eom.Payload(mass)))
    arm = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    carried.begin(arm)
    np.testing.assert_array_equal(carried.loaded(arm, [])._payload, [payload_parameters(arm.robot, [eom.Payload(2.0)])])
    assert not said
    carried.begin(arm)
    assert carried.loaded(arm, []) is arm
    assert said == ["the new robot begins without the payload of the one before: set it again"]
    carried._receive(payload_message(eom.Payload(1.0), tool="hand"))
    assert said[1].startswith("payload refused: payload: sea_planar_2r has no frame 'hand'")
