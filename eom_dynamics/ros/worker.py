# SPDX-License-Identifier: Apache-2.0
"""Long computations in a thread beside a node's executor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from rclpy.node import Node
from rclpy.task import Future


class Worker:
    """A thread that runs jobs one after the other, and does not keep the process from ending."""

    def __init__(self, node: Node, name: str) -> None:
        """Start the thread; results go to the executor of ``node``, in the order of the jobs."""
        self._node = node
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = SimpleQueue()
        self._results: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run a job, which must not raise, and have the node's executor call ``done`` with its result."""
        self._jobs.put((job, done))

    def compute(self, job: Callable[[], Any]) -> Future:
        """The result of a job, which must not raise, to be awaited in a coroutine of the node's executor."""
        future: Future = Future()

        def run() -> None:
            future.set_result(job())

        self._jobs.put((run, lambda _: None))  # the task that follows wakes the executor
        return future

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            self._results.put((done, job()))
            if (executor := self._node.executor) is not None:
                executor.create_task(self._finish)  # not done itself: rclpy does not run tasks in order

    def _finish(self) -> None:
        done, result = self._results.get()
        done(result)
