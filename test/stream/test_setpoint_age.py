# SPDX-License-Identifier: Apache-2.0
"""Age of a stream: timeouts are found in time, and neither stalls nor jumps of the clock are taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics.stream.setpoint_age import OBSERVATIONS, SetpointAge

MS = 10**6


def feed(age: SetpointAge, now: int) -> None:
    age.fed = True
    assert not age.observe(now)


@given(timeout=st.integers(5, 5000), late=st.lists(st.integers(0, 3), max_size=30))
def test_a_timeout_is_found_after_it_and_within_a_few_observations(timeout: int, late: list[int]) -> None:
    """Observations come up to three tenths of a period late."""
    period = timeout * MS // OBSERVATIONS
    age, now = SetpointAge(timeout * 1e-3), 10**18
    feed(age, now)
    start = now
    for k in range(3 * OBSERVATIONS):
        now = start + (k + 1) * period + (late[k] * period // 10 if k < len(late) else 0)
        if age.observe(now):
            break
    assert timeout * MS * (1 - 1e-9) <= now - start <= (timeout * 1.2 + 1) * MS
    assert age.age == pytest.approx((now - start) * 1e-9, rel=1e-6)


def test_a_stall_a_jump_and_a_clock_that_goes_back_are_no_timeout() -> None:
    age = SetpointAge(0.1)
    feed(age, 0)
    assert not age.observe(10_000 * MS)
    feed(age, 10_001 * MS)
    assert not age.observe(5 * MS) and age.age == 0.0
    # Two observations without a setpoint: half of the timeout each.
    assert not age.observe(5_000 * MS)
    assert age.observe(9_000 * MS)


def test_without_a_timeout_it_only_counts() -> None:
    age = SetpointAge(0.0)
    feed(age, 0)
    assert not age.observe(10**12)
    assert age.age == pytest.approx(1000.0)
