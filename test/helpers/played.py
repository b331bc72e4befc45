# SPDX-License-Identifier: Apache-2.0
"""Play setpoints to a node while something happens, and count the answers that are not those of the library."""

import json
import subprocess
import sys

import numpy as np
import processes

from eom_dynamics.messages.fields import COMMAND_FIELDS


class Play:
    """The player as a process in the namespace of a node; ``sent`` is the number of setpoints so far."""

    def __init__(self, client, folder, arrays, rate):
        np.savez(folder / "setpoints.npz", **arrays)
        self._folder, self._counts = folder, folder / "counts"
        space = client.process.namespace
        self.process = processes.popen(
            [
                *(sys.executable, "-m", "eom_dynamics.ros.player", "setpoints.npz", "answers.npz", "--force"),
                *("--rate", rate, "--grace", "10", "--timeout", "60"),
                *("--ros-args", "-r", f"__ns:={space}", "-r", f"/diagnostics:={space}/diagnostics"),
            ],
            cwd=folder,
            stdout=self._counts.open("w"),
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def counts(self):
        lines = self._counts.read_text().splitlines()
        return json.loads(lines[-1]) if lines else {"sent": 0, "received": 0}

    def record(self):
        """Counts and answers, after the end."""
        assert self.process.returncode == 0, self.process.stderr.read()
        return self.counts, dict(np.load(self._folder / "answers.npz"))


def played(client, folder, arrays, rate, meanwhile):
    """Play all setpoints, and call ``meanwhile`` ten times a second with the number sent. Returns counts and record."""
    play = Play(client, folder, arrays, rate)
    try:
        while play.process.poll() is None:
            client.spin(0.1)
            meanwhile(play.counts["sent"])
    finally:
        processes.end(play.process)
    return play.record()


def wrong_answers(arms, arrays, record, rounding=0.0):
    """Number of answers of which not all numbers are those of the library for one of the arms.

    Args:
        arms: of which the node may have had any.
        arrays: setpoints.
        record: of the player.
        rounding: difference that is allowed, relative to the largest number of the field; by default none.
    """
    answered = np.isfinite(record["round_trip"])
    right = np.zeros(np.count_nonzero(answered), dtype=bool)
    for arm in arms:
        fits = np.ones_like(right)
        wanted = arm.feedforward(*(x[answered] for x in arrays.values()))
        for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
            difference = np.abs(record[name][answered] - values).max(axis=1)
            fits &= difference <= rounding * np.abs(values).max(initial=0.0)
        right |= fits
    return int(np.count_nonzero(~right))
