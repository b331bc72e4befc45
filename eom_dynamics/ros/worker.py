# SPDX-License-Identifier: Apache-2.0
"""Worker thread for long computations of a node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from rclpy.node import Node
from rclpy.task import Future


class Worker:
    """Daemon thread that runs jobs in order."""

    def __init__(self, node: Node, name: str) -> None:
        """Start the thread; the executor of ``node`` receives the results in order."""
        self._node = node
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = SimpleQueue()
        self._results: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Queue a job, which must not raise; the node's executor calls ``done`` with its result."""
        self._jobs.put((job, done))

    def compute(self, job: Callable[[], Any]) -> Future:
        """Queue a job, which must not raise; return a future to await in the node's executor."""
        future: Future = Future()

        def run() -> None:
            future.set_result(job())

        self._jobs.put((run, lambda _: None))  # the task created after the job wakes the executor
        return future

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            self._results.put((done, job()))
            if (executor := self._node.executor) is not None:
                executor.create_task(self._finish)  # not `done`: rclpy does not run tasks in order

    def _finish(self) -> None:
        done, result = self._results.get()
        done(result)
