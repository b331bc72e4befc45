# SPDX-License-Identifier: Apache-2.0
"""Two robot descriptions that replace each other a hundred times in the middle of a stream."""

import itertools

import pytest
from node_client import Client, status_of
from played import played, swings, wrong_answers
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.robot import robot_from_urdf

NAMES = ("shoulder", "elbow")
SWAPS, RATE, COUNT = 100, 250, 2500

# Growth of the node from the tenth swap on, bytes: robots that come back are not loaded anew.
GROWTH = 2e6


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_hundred_descriptions(start, describe, tmp_path, fault_row):
    urdfs = {f"arm_{k}": urdf_arm(f"arm_{k}", NAMES, 1.0 + k) for k in range(2)}
    client = start("-r", f"robot_description:={describe.topic}", client=Client)
    turns, swapped, resident = itertools.cycle(urdfs), [], []

    def swap(_=None):
        """Describe the other robot as soon as the last one has been taken."""
        taken = status_of(client.diagnostics[-1])[2]["robot"]
        if not swapped or taken == swapped[-1]:
            swapped.append(next(turns))
            describe(urdfs[swapped[-1]])
            resident.append(client.process.resident_bytes)

    swap()
    client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the first robot")
    arrays = swings(len(NAMES), COUNT, RATE)
    arms = [eom.ElasticArm(robot_from_urdf(urdf)) for urdf in urdfs.values()]
    totals, wrong = {"sent": 0, "lost": 0}, 0
    while len(swapped) <= SWAPS:
        counts, record = played(client, tmp_path, arrays, RATE, swap)
        wrong += wrong_answers(arms, arrays, record)
        totals = {name: total + counts[name] for name, total in totals.items()}
    values = client.next_diagnostics()[2]
    growth = max(resident[10:]) - resident[10]
    remark = f"grows by {growth / 1e6:.2f} MB from the tenth on"
    fault_row(f"description swapped {len(swapped) - 1} times", totals, wrong, values, remark)
    assert (wrong, totals["lost"]) == (0, 0)
    assert "refused robot" not in values and values["robot"] in urdfs
    assert growth < GROWTH
