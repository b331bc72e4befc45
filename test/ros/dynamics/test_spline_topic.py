# SPDX-License-Identifier: Apache-2.0
"""Limits of a trajectory are checked once: again only where a planner has not checked this motion of this robot."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from setpoint_engines import unspun_node
from tool_messages import spline_message

import eom_dynamics as eom
from eom_dynamics.control.trajectories import limits_digest
from eom_dynamics.robot.payload import payload_parameters, with_parameters
from eom_dynamics.ros.dynamics import spline_topic
from eom_dynamics.trajectory import rest_to_rest
from eom_dynamics.trajectory.feedforward import checked

ROBOT = eom.load_robot("sea_planar_2r")
FIRST, SECOND = ROBOT.joints
MOTION = rest_to_rest([0.0, 0.0], [0.1, 0.1], 2.0)


def loaded(mass: float) -> eom.Robot:
    return with_parameters(ROBOT, payload_parameters(ROBOT, [eom.Payload(mass)]))


def changed(**properties: Any) -> eom.Robot:
    return replace(ROBOT, joints=(replace(FIRST, **properties), SECOND))


@pytest.fixture
def node(ros: Any) -> Iterator[Any]:
    with unspun_node("/judged", robot_file="sea_planar_2r") as node:
        yield node


DIGESTS = {
    "none": "",
    "of another motion": limits_digest(rest_to_rest([0.0, 0.0], [0.1, 0.1], 2.1), ROBOT),
    "with other limits": limits_digest(MOTION, changed(limits=replace(FIRST.limits, velocity=1.0))),
    "of another robot": limits_digest(MOTION, changed(mass=FIRST.mass + 0.1)),
    "with a payload": limits_digest(MOTION, loaded(0.01)),
    "its own": limits_digest(MOTION, ROBOT),
}


@pytest.mark.parametrize("whose", DIGESTS)
@pytest.mark.parametrize("carried", [0.0, 0.01])
def test_limits_are_checked_unless_the_digest_is_its_own(
    node: Any, monkeypatch: pytest.MonkeyPatch, whose: str, carried: float
) -> None:
    checks: list[Any] = []

    def check(*given: Any) -> Any:
        checks.append(given)
        return checked(*given)

    monkeypatch.setattr(spline_topic, "checked", check)
    topic, loop = node._trajectories, node._stream.loop
    if carried:
        loop.carry(eom.Payload(carried), 0.0)
    message = spline_message(MOTION, ROBOT.joint_names)
    message.limits_digest = DIGESTS[whose]
    topic._receive(message)
    if whose == ("with a payload" if carried else "its own"):
        assert not checks and node._stream.player.playing
        assert loop.record.valid, "its first command is sent at once"
        return
    assert not node._stream.player.playing
    topic._worker._finish(5.0)
    assert len(checks) == 1 and node._stream.player.playing


def test_one_that_need_not_be_checked_waits_for_those_before_it(node: Any) -> None:
    topic, statuses = node._trajectories, list[Any]()
    node._stream.player.reports._status.publish = statuses.append
    for request, digest in (("first", ""), ("second", DIGESTS["its own"])):
        message = spline_message(MOTION, ROBOT.joint_names)
        message.request, message.limits_digest = request, digest
        topic._receive(message)
    topic._worker._finish(5.0)
    topic._worker._finish(5.0)
    assert [status.request for status in statuses if status.status == status.ACCEPTED] == ["first", "second"]
