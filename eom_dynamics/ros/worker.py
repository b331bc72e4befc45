# SPDX-License-Identifier: Apache-2.0
"""Worker threads for long computations of a node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

from rclpy.node import Node
from rclpy.task import Future


class Worker:
    """Daemon thread that runs jobs in order, until :func:`end_workers`."""

    def __init__(self, node: Node, name: str) -> None:
        """Start the thread; the executor of ``node`` receives the results in order."""
        self._node = node
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = SimpleQueue()
        self._results: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        _WORKERS.add(self)

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Queue a job; the node's executor calls ``done`` with its result, or with the exception that it raises."""
        self._jobs.put((job, done))

    def compute(self, job: Callable[[], Any]) -> Future:
        """Queue a job; return a future to await in the node's executor, where an exception of the job is raised."""
        future: Future = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

        self._jobs.put((run, lambda _: None))  # the task created after the job wakes the executor
        return future

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            if self._ending:
                return
            try:
                found = job()
            except Exception as error:
                found = error
            self._results.put((done, found))
            if not self._ending and (executor := self._node.executor) is not None:
                executor.create_task(self._finish)  # not `done`: rclpy does not run tasks in order

    def _finish(self) -> None:
        done, result = self._results.get()
        done(result)

    def _end(self) -> None:
        """End after the present job."""
        self._ending = True
        self._jobs.put((_nothing, _nothing))  # wakes the thread


def end_workers(node: Node, timeout: float) -> bool:
    """End the worker threads of a node after their current jobs; return whether all ended within ``timeout`` s.

    A thread that still runs while the context and the interpreter end may block both.
    """
    deadline = time.monotonic() + timeout
    workers = [worker for worker in _WORKERS if worker._node is node]
    for worker in workers:
        worker._end()
    for worker in workers:
        worker._thread.join(max(deadline - time.monotonic(), 0.0))
    return not any(worker._thread.is_alive() for worker in workers)


def _nothing(*_: Any) -> None:
    pass


_WORKERS: WeakSet[Worker] = WeakSet()
