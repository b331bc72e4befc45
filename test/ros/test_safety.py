# SPDX-License-Identifier: Apache-2.0
"""``safety: strict``, the default: no hostile stream leads to a command beyond a limit, or to a jump."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.control.settings import SAFETY

PANDA = eom.load_robot("panda")
LIMITS = [joint.limits for joint in PANDA.independent_joints]
LOWER, UPPER, VELOCITY, EFFORT = (
    np.array([getattr(x, name) for x in LIMITS]) for name in ("lower", "upper", "velocity", "effort")
)
HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
COUNT = 60
# Motors from links: deflection of the springs, rad.
DEFLECTION = 0.02


def wave(k: float) -> np.ndarray:
    """State (5, 7) of a clean motion after k ms."""
    t, w = 1e-3 * k, 2 * np.pi
    rows = [
        1 - np.cos(w * t),
        w * np.sin(w * t),
        w**2 * np.cos(w * t),
        -(w**3) * np.sin(w * t),
        -(w**4) * np.cos(w * t),
    ]
    return np.outer(0.05 * np.array(rows), np.ones(7)) + np.outer([1, 0, 0, 0, 0], HOME)


Hostile = Callable[[float, np.random.Generator], tuple[np.ndarray, float | None]]


def shifted(**rows: Any) -> Hostile:
    def state(k: float, rng: np.random.Generator) -> tuple[np.ndarray, float | None]:
        x = wave(k)
        for name, value in rows.items():
            x[["q", "qd", "qdd", "qddd", "qdddd"].index(name)] += value
        return x, 10**6 * k

    return state


def stamped(stamp: Callable[[float], float | None]) -> Hostile:
    return lambda k, rng: (wave(k), stamp(k))


STREAMS: dict[str, Hostile] = {
    "a jump of a radian": shifted(q=1.0),
    "a small jump": shifted(q=0.1),
    "jumps back and forth": lambda k, rng: (wave(k) + 0.3 * (int(k) % 2) * np.eye(5)[:, :1], 10**6 * k),
    "noise": lambda k, rng: (wave(k) + 0.2 * rng.normal(size=(5, 7)), 10**6 * k),
    "degrees": lambda k, rng: (np.degrees(wave(k)), 10**6 * k),
    "beyond the ranges": lambda k, rng: (np.vstack([UPPER + 0.5, wave(k)[1:]]), 10**6 * k),
    "a velocity beyond limits": shifted(qd=100.0),
    "an acceleration beyond limits": shifted(qdd=1e4),
    "a jerk beyond limits": shifted(qddd=1e7),
    "a snap beyond reason": shifted(qdddd=1e12),
    "not a number": shifted(q=np.nan),
    "huge numbers": shifted(qd=1e300),
    "an hour ahead": stamped(lambda k: 10**6 * k + 3600 * 10**9),
    "an hour old": stamped(lambda k: 10**6 * k - 3600 * 10**9),
    "without stamps": stamped(lambda k: None),
    "one stamp": stamped(lambda k: 0),
    "stamps that go back": stamped(lambda k: -(10**6) * k),
    "two publishers": lambda k, rng: (wave(k) if int(k) % 2 else wave(k) + 0.5 * np.eye(5)[:, :1], 10**6 * k),
    "a jump without stamps": lambda k, rng: (wave(k) + np.eye(5)[:, :1], None),
}


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    # This process may be held up for longer than the timeout of strict.
    options = ("safety:=strict", "hold_last_command:=always", "setpoint_timeout:=2")
    return start_shared("-p", "robot_file:=panda", *(word for option in options for word in ("-p", option)))


@pytest.fixture
def client(node: Any) -> Iterator[Any]:
    for transition in ("deactivate", "activate"):
        assert node.transition(transition)
    node.until_silent()
    node.motor_setpoint.clear()
    node.feedforward.clear()
    return node


def send(client: Any, state: np.ndarray, stamp: int) -> None:
    seconds, nanoseconds = divmod(stamp, 10**9)
    client.publish(state, at=nanoseconds, seconds=seconds)


def test_the_defaults_are_those_of_the_level(node: Any, start: Any) -> None:
    off = start("-p", "robot_file:=panda", "-p", "safety:=off", "-p", "task_limits:=warn")
    strict = SAFETY["strict"] | {"setpoint_timeout": 2.0}
    for client, values in ((node, strict), (off, SAFETY["off"] | {"task_limits": "warn"})):
        assert {name: client.get_parameter(name) for name in values} == values


@pytest.mark.parametrize("name", STREAMS)
def test_a_hostile_stream_commands_nothing_beyond_a_limit_and_no_jump(
    client: Any, name: str, rng: np.random.Generator
) -> None:
    for _ in range(10):
        client.spin(0.003)
        send(client, wave(0), client.node.get_clock().now().nanoseconds)
    client.wait(lambda: client.motor_setpoint, "a command")
    begin = client.node.get_clock().now().nanoseconds
    for _ in range(COUNT):
        client.spin(0.003)
        state, stamp = STREAMS[name]((client.node.get_clock().now().nanoseconds - begin) * 1e-6, rng)
        send(client, state, 0 if stamp is None else begin + round(stamp))
    client.spin(0.3)
    before = client.next_diagnostics()[2]
    assert name == "without stamps" or int(before["refused"]) + int(before["dropped as too old"]) > 0
    q = np.array([message.position for message in client.motor_setpoint])
    assert np.isfinite(q).all()
    assert np.all(q > LOWER - DEFLECTION) and np.all(q < UPPER + DEFLECTION)
    assert np.all(np.abs([message.effort for message in client.feedforward]) <= EFFORT)
    assert np.all(np.abs([message.velocity for message in client.motor_setpoint]) <= VELOCITY + 0.2)
    # As far as accelerations lead from one answer to the next, 0.1 s later at most.
    assert np.abs(np.diff(q, axis=0)).max() < 0.11


def test_a_clean_stream_is_answered_in_full(client: Any) -> None:
    before = client.next_diagnostics()[2]
    start = client.node.get_clock().now().nanoseconds
    for _ in range(200):
        now = client.node.get_clock().now().nanoseconds
        send(client, wave((now - start) * 1e-6), now)
        client.spin(0.003)
    client.wait(lambda: len(client.motor_setpoint) >= 200, "answers")
    after = client.next_diagnostics()[2]
    assert after["refused"] == before["refused"] and after["dropped as too old"] == before["dropped as too old"]


def test_a_first_setpoint_in_degrees_of_a_joint_without_limits_is_asked_for_its_unit(start: Any) -> None:
    client = start("-p", "robot_file:=planar_2r", "-p", "safety:=strict")
    assert not np.isfinite(eom.load_robot("planar_2r").joints[0].limits.upper)
    state = np.zeros((5, 2))
    state[0] = [45.0, 0.0]
    client.repeat(
        lambda: send(client, state, client.node.get_clock().now().nanoseconds),
        lambda: client.values["last refusal"],
        "a refusal",
    )
    assert "joint_1 starts at 45 rad, 7.16 turns from zero: was that in degrees?" in client.values["last refusal"]
    assert not client.motor_setpoint
    send(client, np.radians(state), client.node.get_clock().now().nanoseconds)
    client.wait(lambda: client.motor_setpoint, "a command")
