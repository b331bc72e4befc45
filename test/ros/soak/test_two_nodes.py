# SPDX-License-Identifier: Apache-2.0
"""Two nodes for the same motors that start one shortly after the other: exactly one of them becomes active."""

import pytest
from node_client import Client
from paths import CONFIG

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]

PAIRS = 40
DELAYS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 4.0)  # s
STRICT = ("--params-file", CONFIG / "sea_planar_2r.yaml", "-p", "safety:=strict")


def test_exactly_one_of_two_nodes_that_start_together_is_active(start):
    """Of processes of their own, as forks start at once."""
    counts = []
    for k in range(PAIRS):
        own = {"prefix": ("env",), "client": Client, "discovered": False}
        first = start(*STRICT, **own)
        first.spin(DELAYS[k % len(DELAYS)])
        second = start(*STRICT, **own, beside=first.process)
        second.join(first)
        nodes = first, second
        for node in nodes:
            node.wait(lambda node=node: node.diagnostics, "diagnostics")
        first.wait(lambda nodes=nodes: [x.values["state"] for x in nodes].count("active") == 1, "one active node")
        first.spin(3.0)
        first.next_diagnostics()
        counts.append([x.values["state"] for x in nodes].count("active"))
        for node in nodes:
            start.replace(node)
    assert counts == [1] * PAIRS
