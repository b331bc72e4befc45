# SPDX-License-Identifier: Apache-2.0
"""Play setpoints to a node during other events, and count the answers that differ from the library."""

import json

import numpy as np
import processes
from node_client import fork_server

from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.fields import COMMAND_FIELDS


class Play:
    """The player as a process in the namespace of a node, a fork like it; it writes ``answers.npz``."""

    def __init__(self, namespace, folder, arrays, *, rate=1000, grace=10, timeout=60):
        np.savez(folder / "setpoints.npz", **arrays)
        self._answers, self._log = folder / "answers.npz", folder / "player.log"
        arguments = [
            *("setpoints.npz", "answers.npz", "--force", "--rate", rate, "--grace", grace, "--timeout", timeout),
            *("--ros-args", "-r", f"__ns:={namespace}", "-r", f"/diagnostics:={namespace}/diagnostics"),
        ]
        with self._log.open("wb") as log:
            self.process = fork_server().start("eom_dynamics.ros.player", arguments, folder, log)

    @property
    def reports(self):
        """Counts so far, one after the other."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    @property
    def counts(self):
        return self.reports[-1] if self.reports else {"sent": 0, "received": 0}

    @property
    def errors(self):
        lines = processes.own_lines(self._log.read_text()).splitlines()
        return "\n".join(line for line in lines if not line.startswith("{"))

    def record(self, patience=110, code=0):
        """Counts and answers, after the end."""
        assert self.process.wait(patience) == code, self.errors
        return self.counts, dict(np.load(self._answers))


def swings(n, count, rate):
    """Setpoints of a motion of n joints within the limits of ``urdf_arm``, ending at rest."""
    t, omega = np.arange(count)[:, np.newaxis] / rate, np.linspace(1.0, 3.0, n)
    motion = {name: 0.5 * omega**k * np.sin(omega * t + k * np.pi / 2) for k, name in enumerate(STATE_NAMES)}
    for name in STATE_NAMES[1:]:
        motion[name][-1] = 0.0
    return motion


def played(client, folder, arrays, rate, meanwhile):
    """Play all setpoints, and call ``meanwhile`` ten times a second with the number sent. Returns counts and record."""
    play = Play(client.process.namespace, folder, arrays, rate=rate)
    try:
        while play.process.poll() is None:
            client.spin(0.1)
            meanwhile(play.counts["sent"])
    finally:
        processes.end(play.process)
    return play.record()


def wrong_answers(arms, arrays, record, rounding=0.0):
    """Number of answers that differ from the library for each of the arms.

    Args:
        arms: arms that the node may have had.
        arrays: setpoints.
        record: record of the player.
        rounding: allowed difference, relative to the largest number of the field; zero by default.
    """
    answered = np.isfinite(record["round_trip"])
    right = np.any([answers_of(arm, arrays, record, rounding) for arm in arms], axis=0)
    return int(np.count_nonzero(answered & ~right))


def answers_of(arm, arrays, record, rounding=0.0):
    """True for answers with all numbers of the library for an arm; False without an answer."""
    fits = np.isfinite(record["round_trip"])
    for name, values in zip(COMMAND_FIELDS, arm.feedforward(*arrays.values()), strict=True):
        fits &= np.abs(record[name] - values).max(axis=1) <= rounding * np.abs(values).max(initial=0.0)
    return fits
