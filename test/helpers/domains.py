# SPDX-License-Identifier: Apache-2.0
"""ROS 2 domain that no other test run of this machine uses, and no leftover node."""

import functools
import os
import random
import socket
from pathlib import Path

_PROFILE = Path(__file__).with_name("discovery.xml")


@functools.cache
def claim_domain():
    """Put this process, and those it starts, into a domain of their own, local to this machine; once and for all."""
    # Domains with ports below the ephemeral ports of Linux.
    for number in random.SystemRandom().sample(range(1, 102), 101):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0eom_dynamics test domain {number}")
        except OSError:
            claim.close()
            continue
        if not _is_empty(number):
            claim.close()
            continue
        claim.detach()  # stays bound until the process ends
        os.environ["ROS_DOMAIN_ID"] = str(number)
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(_PROFILE))
        return number
    raise RuntimeError("all 101 domains are in use")


def _is_empty(number):
    """True if no participant has the first port of the domain."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        try:
            port.bind(("", 7400 + 250 * number + 10))
        except OSError:
            return False
    return True
