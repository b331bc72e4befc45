# SPDX-License-Identifier: Apache-2.0
"""Which compiled call a message gets: learned from two alike, of the latest shapes, found again by trying."""

from types import SimpleNamespace

import pytest

from eom_dynamics.messages.fields import BASE_FIELD, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.stream.compiled_stream import LearnedShapes


class Compiled:
    """Creates calls that take the messages of one frame only; ``created`` counts them."""

    def __init__(self):
        self.created = 0

    def call_for(self, setpoint, message):
        self.created += 1
        return SimpleNamespace(shape=shape(setpoint), call=lambda other: b"" if other == message else None)


def shape(setpoint):
    return setpoint.header.frame_id, tuple(setpoint.joint_names), (0, 0, 0), (len(setpoint.stiffness), 0, 0), False


def setpoint(frame, stiffness=()):
    fields = dict.fromkeys((*WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD), ())
    fields[STIFFNESS_FIELDS[0]] = stiffness
    return SimpleNamespace(header=SimpleNamespace(frame_id=frame), joint_names=["a", "b"], **fields)


@pytest.fixture
def learned():
    """Shapes, and a function that learns frames in a sequence."""
    shapes, compiled = LearnedShapes(), Compiled()

    def learn(*frames, **options):
        for frame in frames:
            shapes.learn(setpoint(frame, **options), frame.encode(), compiled.call_for)

    return shapes, compiled, learn


def test_a_shape_is_learned_from_two_messages_in_a_row(learned):
    shapes, compiled, learn = learned
    learn("x", "y", "x")
    assert shapes.latest is None
    learn("x")
    assert shapes.latest.shape[0] == "x"
    learn("x", "x")  # it has not taken them
    assert compiled.created == 1


def test_the_call_that_takes_a_message_is_the_latest(learned):
    shapes, _, learn = learned
    learn("x", "x", "y", "y")
    assert shapes.latest.shape[0] == "y"
    assert shapes.switch_to(b"x")
    assert shapes.latest.shape[0] == "x"
    assert not shapes.switch_to(b"z")
    assert shapes.latest.shape[0] == "x"
    assert shapes.switch_to(b"y")


def test_the_latest_four_are_kept(learned):
    shapes, _, learn = learned
    learn(*"aabbccdd")
    assert shapes.switch_to(b"a")
    learn(*"ee")  # in the place of b, the longest unused
    assert not shapes.switch_to(b"b")
    assert all(shapes.switch_to(frame.encode()) for frame in "acde")


def test_all_are_forgotten(learned):
    shapes, _, learn = learned
    learn("x", "x", "y", "y")
    shapes.forget()
    assert shapes.latest is None
    assert not shapes.switch_to(b"x")
    learn("y")
    assert shapes.latest is None
