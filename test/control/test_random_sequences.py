# SPDX-License-Identifier: Apache-2.0
"""Random sequences of every input of the control loop: what is sent passes an oracle that knows the robot alone."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from put_back import changed
from random_scenes import CYCLES, INPUTS, ROBOTS, STATES, Result, run, table
from sent_oracle import Finding

SHARE = min(1.0, float(os.environ.get("SOAK_SECONDS", "600")) / 600)
"""Share of the full length, by ``make soak SECONDS=…``."""

ALL = round(10**7 * SHARE)
LEAST = 1000 * SHARE
"""How often each input comes in each state."""

BLOCK = 10 * len(ROBOTS)


def report(result: Result) -> str:
    """Rules that fail, and the command that runs the worst scenes again."""
    seeds = " ".join(map(str, list(result.findings)[:5]))
    return f"python test/helpers/random_scenes.py {seeds}\n{result.summary()}"


@pytest.mark.parametrize("name", ROBOTS)
def test_what_is_sent(name: str) -> None:
    """2 10⁵ cycles, a tenth of them with each arm."""
    first = list(ROBOTS).index(name)
    result = run(range(first, BLOCK, len(ROBOTS)))
    assert not result.findings, report(result)


def _block(first: int) -> Result:
    return run(range(first, first + BLOCK))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_every_input_in_every_state() -> None:
    """10⁷ cycles, in which each kind of input comes at least 1,000 times in each state where it can."""
    findings: dict[int, list[Finding]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    blocks = range(0, ALL // CYCLES, BLOCK)
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        for result in pool.map(_block, blocks):
            findings |= result.findings
            counts += result.counts
    print(f"seeds 0 to {blocks[-1] + BLOCK - 1}, {CYCLES} cycles each", table(counts), sep="\n")
    whole = Result(findings, counts)
    assert not findings, report(whole)
    rare = [(state, kind, counts[state, kind]) for state in STATES for kind in INPUTS if counts[state, kind] < LEAST]
    assert not rare, rare


FAULTS = {
    "a pace changes within 10 ms": (
        "pace_keeper.hpp",
        "commander_.parameters.stop_duration * std::max(size, std::cbrt(size))",
        "0.01",
    ),
    "efforts are not within limits": ("gate.hpp", "if (policy == LimitPolicy::clip || (policy", "if (false && (policy"),
    "another mode begins anew": ("gate.hpp", "if (sends_ && changes_)", "if (false)"),
    "another leader begins anew": (
        "gate.hpp",
        "else if (sends_ && leader != before.leader && !complies)",
        "else if (false)",
    ),
    "motions begin with nominal stiffness": ("company.hpp", "from_ = from;", "from_ = Setpoint<Robot>{};"),
    "steps are not judged": ("commander.hpp", "if (blocks(leader, stamp)) {", "if (false) {"),
    "stamps are trusted": (
        "plausibility.hpp",
        "return least != UNKNOWN && lead - least > ",
        "return false && lead - least > ",
    ),
}
"""Some causes of what drives must not get, and how headers have them again: header, text, and what takes its place."""


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_put_back_is_found(fault: str) -> None:
    with changed(*FAULTS[fault]):
        assert run(range(BLOCK)).findings
