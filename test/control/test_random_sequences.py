# SPDX-License-Identifier: Apache-2.0
"""Random sequences of every input of the control loop: what is sent passes an oracle that knows the robot alone."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest
from exported import loop_sources
from put_back import changed
from random_scenes import CYCLES, ROBOTS, STATES, Result, Scene, run, table
from sent_oracle import Finding
from wide_scenes import WIDE_ROBOTS, WideScene

SHARE = min(1.0, float(os.environ.get("SOAK_SECONDS", "600")) / 600)
"""Share of the full length, by ``make soak SECONDS=…``."""

ALL = round(2 * 10**7 * SHARE)
"""Cycles in all."""

LEAST = {Scene: 1000 * SHARE, WideScene: 100 * SHARE}
"""How often each input comes in each state."""

BLOCK = 10 * len(ROBOTS)

WIDE = 5
"""Scenes of each arm with more inputs."""


def report(result: Result, kind: type[Scene] = Scene) -> str:
    """Rules that fail, and the command that runs the worst scenes again."""
    seeds = " ".join(map(str, list(result.findings)[:5]))
    return f"python test/helpers/{kind.__module__}.py {seeds}\n{result.summary()}"


@pytest.mark.parametrize("name", ROBOTS)
def test_what_is_sent(name: str) -> None:
    """2 10⁵ cycles, a tenth of them with each arm."""
    first = list(ROBOTS).index(name)
    result = run(range(first, BLOCK, len(ROBOTS)))
    assert not result.findings, report(result)


@pytest.mark.parametrize("name", WIDE_ROBOTS)
def test_all_inputs_of_hosts(name: str) -> None:
    """Measured velocities, controllers in front, periods of 0.25 to 8 ms, resets of the clock, all kinds of arms."""
    arms = list(WIDE_ROBOTS)
    result = run(range(arms.index(name), WIDE * len(arms), len(arms)), WideScene)
    assert not result.findings, report(result, WideScene)


FOUND = {
    81166: "a mode changes during a target of damped springs, while motors decelerate",
    300667: "a motor turns about when a stop begins, with a lead of commands",
    402450: "a restart ends a stop before its first cycle",
    501042: "positions pass from another mode to a joint that moves on beyond its range",
    601049: "a stop from 1e154 rad/s never ended, nor did the cycle that looked at it",
    700463: "a setpoint ahead of its stream made later setpoints count as late, which may catch up",
    900121: "a target took over a joint that braked harder before its limit than targets may",
    1101937: "positions pass from another mode, and stand at a limit of a command ahead of its setpoint",
    1302030: "a payload changed at the place of a restart, faster than clipped limits",
    1314953: "an arm that waits is found elsewhere, with springs as they were loaded before",
    1321124: "efforts that a commanded stiffness does not allow passed from an arm that complies as NaN",
    1350914: "setpoints with jerk and snap alone are of an arm that is about to move, not at rest",
    1353770: "after a restart of an arm that complied, the efforts of its damping ended in one cycle",
    1363154: "measurements come back in the cycle of a target, after a host's request of the position",
    1371061: "an acceleration that came back from beyond its limit within a cycle was cut to it between two commands",
    1381620: "efforts that a payload changed at their limit of rates passed to another leader, beyond this limit",
    1403589: "positions pass from another mode, and stand at a position beyond the joint's range",
    1430268: "a late cycle during a payload change, and a motion near the limit of effort rates",
    1431236: "a stop begins before a trajectory passes the end of a range",
    1442980: "efforts pass to a target while a payload changes them almost as fast as allowed",
    1451570: "a stream continues after a stall with a payload change",
    1454670: "an arm is located at a moved position, while positions pass from another mode",
    1460725: "a payload changes in a late cycle, while efforts pass from another mode",
    1463217: "a motor turns back, with a gear that loses power of a load, when another leader begins",
    1463648: "a stop is requested in the last cycle of impedance",
    1391680: "a stop of a stream with noise that exceeds limits of effort rates",
    1486346: "a payload changes after setpoints of damped springs that end with a jerk, without a velocity",
    1504270: "an arm is located at a position from before a jump, by excluded samples",
    1515904: "a late setpoint after a stall moves motors a little, and the next setpoint uses the rest of its time",
    1521831: "a cycle is late in a stop that began beyond a range",
    1524925: "limits have a stop last twice its duration, and a stream's jerk and snap lead further than within that",
    1384661: "a stop along its path begins beyond a limit of its range, and goes on for some cycles",
}
"""Scenes that were not as their rules say."""

FOUND_WIDE = {
    22: "a stop without a stamp held motors of damped springs, and sent velocities of deflections without transient",
    291: "a stop of a slow joint ended its velocity within 1 ms, before averages",
    312: "a stop was within limits of effort rates, but not its commands at their lead",
    376: "a stop could end an acceleration at its start only beyond the limit of effort rates, however long it was",
    688: "a target took over a joint that braked so hard that the jerk of targets turned it beyond its velocity",
}
"""The same of scenes with more inputs."""


@pytest.mark.parametrize(("kind", "seed"), [(Scene, x) for x in FOUND] + [(WideScene, x) for x in FOUND_WIDE])
def test_what_was_sent_wrongly_once(kind: type[Scene], seed: int) -> None:
    result = run([seed], kind)
    assert not result.findings, report(result, kind)


def _block(kind: type[Scene], first: int) -> Result:
    return run(range(first, first + BLOCK), kind)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", [Scene, WideScene])
def test_every_input_in_every_state(kind: type[Scene]) -> None:
    """2 10⁷ cycles of each kind of scenes, in which each input comes often in each state where it can."""
    findings: dict[int, list[Finding]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    blocks = range(0, ALL // CYCLES, BLOCK)
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        for result in pool.map(partial(_block, kind), blocks):
            findings |= result.findings
            counts += result.counts
    print(f"seeds 0 to {blocks[-1] + BLOCK - 1}, {CYCLES} cycles each", table(counts, kind.inputs), sep="\n")
    whole = Result(findings, counts)
    assert not findings, report(whole, kind)
    least = LEAST[kind]
    rare = [(state, x, counts[state, x]) for state in STATES for x in kind.inputs if counts[state, x] < least]
    assert not rare, rare


FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "a pace changes within 10 ms": [
        ("pace_table.hpp", "return std::max(PACE_DURATIONS[k], shortest_);", "return 0.01;")
    ],
    "a motion begins with noise": [
        ("setpoint.hpp", "x[3][i] = x[4][i] = 0;", "continue;"),
        ("governed_motion.hpp", "LARGEST_EXCESS = 1;", "LARGEST_EXCESS = 1e300;"),
    ],
    "efforts are not within limits": [
        ("gate.hpp", "if (complies || (policy != LimitPolicy::ignore && !plain))", "if (false)")
    ],
    "another mode begins again": [
        ("gate.hpp", "if (sends_ && changes_)\n            begin_efforts", "if (false)\n            begin_efforts")
    ],
    "another leader begins again": [
        ("gate.hpp", "else if (sends_ && leader != before.leader && !complies)", "else if (false)")
    ],
    "non-finite numbers are sent": [
        ("impedance.hpp", "if (!finite(y_) || !finite(q_))", "if (false)"),
        (
            "gate.hpp",
            "if (!finite(output.motor_effort, y.motor_position, y.motor_velocity) || !finite(output.joint_effort))",
            "if (false)",
        ),
        ("commander.hpp", "output.joint_effort, {1, 0}, sent))", "output.joint_effort, {1, 0}, sent) || true)"),
    ],
    "a requested stop is left": [("state_machine.hpp", "near_at_rest && phase_ != Phase::stopping", "near_at_rest")],
    "motions begin with nominal stiffness": [("company.hpp", "from_ = from;", "from_ = Setpoint<Robot>{};")],
    "blends go by the clock": [
        (
            "control_loop.hpp",
            "const std::int64_t step = std::clamp<std::int64_t>(passed, passed < 0 ? 1 : 0, LONGEST_RESPONSE_STEP);",
            "const std::int64_t step = passed;",
        )
    ],
    "a late cycle is caught up": [("loop_motions.hpp", "moves ? latest + LONGEST_RESPONSE_STEP : NEVER", "NEVER")],
    "steps are not checked": [("commander.hpp", "if (!can_step(leader, stamp)) {", "if (false) {")],
    "stamps are trusted": [
        ("plausibility.hpp", "if (greatest == UNKNOWN || lead - ahead <= LONGEST_RESPONSE_STEP)", "if (true)"),
        ("step_time.hpp", "std::min(unchanged_ + spare_, STAMP_JITTER + std::max(", "(STAMP_JITTER + std::max("),
    ],
    "streams run into limits": [
        ("commander.hpp", "leader != Leader::setpoints || Limits<Robot>::can_stop(robot, own(), *stops)", "true")
    ],
    "motions begin while the arm is elsewhere": [
        ("loop_motions.hpp", "facts.strays = where_.strays()", "facts.strays = false")
    ],
    "an arm counts as at its command": [("whereabouts.hpp", "? finite(measured.motor_position) &&", "? false &&")],
    "a stall is caught up": [
        (
            "loop_motions.hpp",
            "(moves ? ahead_ : std::min<std::int64_t>(ahead_, 0))",
            "std::min<std::int64_t>(ahead_, 0)",
        )
    ],
}
"""Some causes of what drives must not get, and how headers have them again: header, text, and what takes its place."""


def test_faults_that_can_be_put_back() -> None:
    sources = loop_sources()
    for header, old, _ in (text for texts in FAULTS.values() for text in texts):
        assert sources[f"include/eom/{header}"].count(old) == 1, old


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_put_back_is_found(fault: str) -> None:
    with changed(*FAULTS[fault]):
        for block in range(8):
            if findings := run(range(block * BLOCK, (block + 1) * BLOCK)).findings:
                seed, found = next(iter(findings.items()))
                print(f"{fault}: {len(findings)} of {(block + 1) * BLOCK} scenes, seed {seed}: {found[0]}")
                return
    raise AssertionError("not found")
