# SPDX-License-Identifier: Apache-2.0
"""Batches beyond the memory of a planning node."""

import resource
from pathlib import Path

import numpy as np
import pytest
from node_client import Client, message_fields
from paths import CONFIG
from played import played, swings, wrong_answers

import eom_dynamics as eom
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import paper_motion

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
RATE, COUNT, FAULT = 250, 2000, 500

# States of a batch; further address space of the planning node, bytes. The request takes
# 28 MB, the answer 39 MB.
STATES = 100_000
LEFT = (8 << 20, 40 << 20, 100 << 20)


def address_space(process):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize"))


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("left", LEFT)
def test_memory_exhausted_in_a_batch(start, tmp_path, fault_row, left):
    from eom_dynamics.srv import ComputeInverseDynamics

    client = start(*IIWA, client=Client)
    planning = start.planning(*IIWA, beside=client.process)
    service = planning.client(ComputeInverseDynamics, "inverse_dynamics")
    states = paper_motion(7).derivatives(np.linspace(0.0, 10.0, STATES))
    whole = ComputeInverseDynamics.Request(**message_fields(dict(zip(STATE_FIELDS, states, strict=True))))
    few = {name: x[:10] for name, x in zip(STATE_FIELDS, states, strict=True)}
    one = ComputeInverseDynamics.Request(**message_fields(few))
    planning.call(ComputeInverseDynamics, "inverse_dynamics", one)
    pid, asked = planning.process.process.pid, []

    def exhaust(sent):
        if sent >= FAULT and not asked:
            limit = address_space(planning.process.process) + left
            resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            asked.append(service.call_async(whole))
        planning.spin(0.0)

    arrays = swings(7, COUNT, RATE)
    counts, record = played(client, tmp_path, arrays, RATE, exhaust)
    wrong = wrong_answers([eom.ElasticArm(eom.load_robot("iiwa"))], arrays, record)
    planning.spin(2.0)
    ended = planning.process.process.poll()
    if ended is None:
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        again = planning.call(ComputeInverseDynamics, "inverse_dynamics", one)
        assert again.success
    answer = asked[0].result() if asked[0].done() else None
    told = "not answered" if answer is None else "answered" if answer.success else f"refused: {answer.message}"
    after = f"planning node {'answers the next one' if ended is None else f'ended ({ended}): start it again'}"
    name = f"batch of {STATES:,} states with {left >> 20} MiB left to the planning node"
    fault_row(name, counts, wrong, client.next_diagnostics()[2], f"{told}; {after}")
    assert (wrong, counts["lost"]) == (0, 0)
    assert ended is None, planning.process.log
