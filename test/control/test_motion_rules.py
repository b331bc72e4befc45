# SPDX-License-Identifier: Apache-2.0
"""Rules of generated motions: a correct record has no finding, and each wrong command in it has one."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from checked import HOME, resting
from loop_rig import Record, rest
from motion_rules import PENDING, Inputs, MotionRules
from sent_oracle import STOPPING, Finding, SentOracle, Settings

from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import Refusal

BEGIN, MID = 50, 300
"""Cycles of the target, and amid its motion."""

SETTINGS = Settings(others={"on_setpoint_loss": "hold"})


@cache
def oracle() -> SentOracle:
    return SentOracle(resting().arm)


def motion() -> tuple[Record, Inputs]:
    """Record of a target of an arm at rest."""
    rig = resting("panda", targets={})
    rig.target(HOME + 0.5)
    rig.cycles(1500)
    record = Record(rig)
    marks = Inputs.none(rig.count, 7, 7)
    marks.posted[BEGIN], marks.target[BEGIN], marks.undisturbed[BEGIN:] = True, HOME + 0.5, True
    return record, marks


def findings(record: Record, marks: Inputs) -> list[Finding]:
    return MotionRules(oracle()).findings(record, SETTINGS, marks)


def test_target_has_no_finding() -> None:
    record, marks = motion()
    assert np.ptp(record.setpoint["q"][:, 0]) > 0.49
    assert not findings(record, marks)


def _set(row: Array, value: float, first: int = MID, last: int | None = MID + 1) -> None:
    row[first:last, 0] = value


def _stand(record: Record, marks: Inputs) -> None:
    record.numbers["status"][MID:] = STOPPING
    record.sent["drive_position"][MID : MID + 20] = record.sent["drive_position"][MID]
    marks.posted[MID : MID + 20] = True  # of which the rule is independent


def _outlier(record: Record, marks: Inputs) -> None:
    marks.outlier[MID] = True
    record.sent["drive_effort"][MID, 0] += 5.0


WRONG: dict[str, Callable[[Record, Inputs], None]] = {
    "overshoot": lambda x, _: _set(x.setpoint["q"], HOME[0] + 0.5 + 2e-6),
    "beyond range, target": lambda x, _: _set(x.setpoint["q"], 2.9),
    "joint velocity over limit, target": lambda x, _: _set(x.setpoint["qd"], 2.2),
    "joint effort over limit, target": lambda x, _: _set(x.command["tau"], 88.0),
    "computed motor effort over limit, target": lambda x, _: _set(x.command["motor_effort"], 88.0),
    "computed effort rate over limit, target": lambda x, _: _set(x.command["taud"], 1003.0),
    "velocity step, target": lambda x, _: _set(x.setpoint["qd"], 0.0, MID, None),
    "effort step, target": lambda x, _: _set(x.sent["drive_effort"], 50.0),
    "velocity while standing": _stand,
    "target is broken off": lambda x, _: x.code.__setitem__(MID, Refusal["over_limits"]),
    "velocity outlier": _outlier,
}
"""A wrong command by the rule that finds it."""


@pytest.mark.parametrize("rule", WRONG)
def test_wrong_command_is_found(rule: str) -> None:
    record, marks = motion()
    WRONG[rule](record, marks)
    assert rule in {x.rule for x in findings(record, marks)}


def test_motor_faster_than_its_limit_is_found() -> None:
    rig = resting("vsa_planar_2r", targets={"acceleration": 5.0, "velocity": 1.0})
    rig.target(rig.q + 0.2)
    rig.cycles(400)
    record, marks, rules = Record(rig), Inputs.none(rig.count, 4, 2), MotionRules(SentOracle(rig.arm))
    assert not rules.findings(record, SETTINGS, marks)
    record.sent["drive_velocity"][150, 0] = 5.1
    record.sent["drive_position"][150:, 0] += 0.02
    assert {"motor speed over limit, target", "motor step, target"} <= {
        x.rule for x in rules.findings(record, SETTINGS, marks)
    }


def test_stop_at_the_end_of_a_range_may_exceed_limits_of_motors() -> None:
    rig = resting("panda", targets={})
    rig.target(HOME + 0.5)
    rig.cycles(MID - BEGIN)
    rig.stop()
    rig.cycles(100)
    record, marks, rule = Record(rig), Inputs.none(rig.count, 7, 7), "computed motor effort over limit, stop"
    _set(record.command["motor_effort"], 88.0, MID + 20, MID + 21)
    for room in (0.5, 1e-3):
        record.setpoint["q"][:, 0] += oracle().upper[0] - room - record.setpoint["q"][MID, 0]
        assert (rule in {x.rule for x in findings(record, marks)}) == (room > 0.1)


@pytest.mark.parametrize(
    ("robot", "name", "first"), [("vsa_planar_2r", "k", [600.0, 300.0]), ("panda", "W", [0, 0, 0, 0, 0, 60.0])]
)
@pytest.mark.xfail(strict=True, reason="time in which drives hold the last command earns a step until the redesign")
def test_step_stays_rejected(robot: str, name: str, first: list[float]) -> None:
    """Stiffness or wrench of a stream ends in one step, which is rejected for as long as its setpoints come."""
    rig = resting(robot, cycles=0)
    q = rig.q
    rig.cycles(100, rest(q), **{name: first})
    rig.cycles(160, rest(q))
    assert np.any(rig.codes[: rig.count] > 0)
    marks = Inputs.none(rig.count, rig.m, rig.n)
    rules = MotionRules(SentOracle(rig.arm))
    assert PENDING[0] not in {x.rule for x in rules.findings(Record(rig), SETTINGS, marks)}
