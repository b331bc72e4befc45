# SPDX-License-Identifier: Apache-2.0
"""Which compiled call a message gets: learned from two alike, of the latest shapes, found again by trying."""

from types import SimpleNamespace

import pytest

from eom_dynamics.messages.fields import BASE_FIELD, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.stream.compiled_stream import LearnedShapes


class Learned(LearnedShapes):
    """Shapes whose calls take the messages of one frame only; ``created`` counts these calls."""

    def __init__(self):
        super().__init__()
        self.created = 0

    def call_for(self, setpoint, message):
        self.created += 1
        frame = setpoint.header.frame_id
        shape = frame, ("a", "b"), (0, 0, 0), (len(setpoint.stiffness), 0, 0), False
        return SimpleNamespace(shape=shape, call=lambda other: b"" if other == message else None)

    def learn_frames(self, frames, stiffness=()):
        empty = dict.fromkeys((*WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD), ())
        for frame in frames:
            setpoint = SimpleNamespace(header=SimpleNamespace(frame_id=frame), joint_names=["a", "b"], **empty)
            setpoint.stiffness = stiffness
            self.learn(setpoint, frame.encode(), self.call_for)


@pytest.fixture
def shapes():
    return Learned()


def test_a_shape_is_learned_from_two_messages_in_a_row(shapes):
    shapes.learn_frames("xyx")
    assert shapes.latest is None
    shapes.learn_frames("xxx")
    assert shapes.latest.shape[0] == "x" and shapes.created == 1
    shapes.learn_frames("xx", stiffness=(1.0, 1.0))
    assert shapes.latest.shape[3] == (2, 0, 0) and shapes.created == 2


def test_the_call_that_takes_a_message_is_the_latest_of_four(shapes):
    shapes.learn_frames("aabbccdd")
    assert shapes.switch_to(b"a") and shapes.latest.shape[0] == "a"
    assert not shapes.switch_to(b"z") and shapes.latest.shape[0] == "a"
    shapes.learn_frames("ee")  # in the place of b, the longest unused
    assert not shapes.switch_to(b"b")
    assert all(shapes.switch_to(frame.encode()) for frame in "acde")
    shapes.forget()
    assert shapes.latest is None and not shapes.switch_to(b"a")
    shapes.learn_frames("e")
    assert shapes.latest is None
