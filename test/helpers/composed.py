# SPDX-License-Identifier: Apache-2.0
"""Several dynamics nodes in one process, and what each of them is to a client."""

from types import SimpleNamespace

import processes
from node_client import fork_server


class Composed:
    """``dynamics_nodes`` as a process; ``nodes`` has what a :class:`node_client.Client` needs of each."""

    def __init__(self, folder, arguments):
        """Start a node for each namespace of ``arguments``, with the arguments that it has there."""
        self._log = (folder / "composed.log").open("a+b")
        command = []
        for space, words in arguments.items():
            command += ["--node", "-r", f"__ns:={space}", "-r", f"/diagnostics:={space}/diagnostics"]
            command += ["-p", "diagnostic_period:=0.1", "-p", "safety:=permissive", *words]
        self.process = fork_server().start("eom_dynamics.ros.dynamics_nodes", command, folder, self._log)
        self.nodes = {
            space: SimpleNamespace(namespace=space, name="eom_dynamics", process=self.process, log="see composed.log")
            for space in arguments
        }

    @property
    def log(self):
        self._log.seek(0)
        return processes.own_lines(self._log.read().decode(errors="replace"))

    def end(self):
        processes.end(self.process)
        self._log.close()
