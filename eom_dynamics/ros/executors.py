# SPDX-License-Identifier: Apache-2.0
"""Executor, worker threads and termination signals of a node's process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

from rclpy.clock import Clock, ROSClock
from rclpy.clock_type import ClockType
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.timer import Timer


def make_executor() -> Executor:
    """Return the events executor; with rclpy before 7.1.4, which lacks it, the executor of one thread, and warn."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        get_logger("eom_dynamics").warning(
            "rclpy has no events executor, its executor of one thread is used: install rclpy 7.1.4 or later"
        )
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin_until(executor: Executor, deadline: float) -> None:
    """Process callbacks until ``deadline`` on the monotonic clock, s; at least one, if any is waiting.

    Otherwise queues would overflow if a node is late for several deadlines in a row.
    """
    while True:
        executor.spin_once(timeout_sec=max(deadline - time.monotonic(), 0.0))
        if time.monotonic() >= deadline:
            return


def steady_timer(node: Node, period: float, callback: Callable[[], None], *, autostart: bool = True) -> Timer:
    """Create a timer on a steady clock: the node's clock, and its timers, may stand still or go back."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME), autostart=autostart)


class PunctualTimers:
    """Timers that keep firing under message load: an executor calls in the order of arrival."""

    def __init__(self) -> None:
        # With their callbacks, and the last time of a call from here, on the clock of the timer, ns.
        self._timers: list[tuple[Timer, Callable[[], None], list[int]]] = []
        self._looked = 0

    def create(self, node: Node, period: float, callback: Callable[[], None], *, steady: bool = False) -> Timer:
        """Create a timer on the clock of the node, or see :func:`steady_timer`; its reset starts it."""
        create = partial(steady_timer, node) if steady else node.create_timer
        timer = create(period, callback, autostart=False)
        self._timers.append((timer, callback, [0]))
        return timer

    def catch_up(self) -> None:
        """Call timers overdue by more than a period, once a period; called after each message."""
        if (now := time.monotonic_ns()) - self._looked < _BETWEEN_LOOKS:
            return
        self._looked = now
        for timer, callback, called in self._timers:
            left, period = timer.time_until_next_call(), timer.timer_period_ns
            if left is not None and left < -period:
                reading = timer.clock.now().nanoseconds
                if not 0 <= reading - called[0] < period:
                    called[0] = reading
                    callback()


_BETWEEN_LOOKS = 1_000_000  # ns


def keep_pace(node: Node, timer: Timer) -> None:
    """Keep a timer at one call per period of simulated time; its callback calls this first.

    If the clock advances, or a timer is reset, while the call of a due timer is queued, the events executor of
    rclpy 7.1.6 queues the call again, and each call postpones the next call by a period. One or more periods are then
    skipped; in a simulation that waits for a command, that is forever. In real time nothing waits, while resets on a
    busy machine would have calls of other timers queued again without end.
    """
    clock = node.get_clock()
    simulated = isinstance(clock, ROSClock) and clock.ros_time_is_active
    if simulated and timer.time_until_next_call() > timer.timer_period_ns:
        timer.reset()


class LateAnswers:
    """Responses of a service after its callback has returned."""

    def __init__(self, service: Any) -> None:
        # Requests under way, with the header of each response, which rclpy passes on.
        self._waiting: list[list[Any]] = []
        self._send, service.send_response = service.send_response, self._answer

    def later(self, response: Any) -> Callable[..., None]:
        """Defer a response; the returned function sends it, or the response that it receives."""
        waiting = [response, None]
        self._waiting.append(waiting)

        def answer(response: Any = response) -> None:
            self._waiting.remove(waiting)
            if waiting[1] is not None:
                self._send(response, waiting[1])

        return answer

    def _answer(self, response: Any, header: Any) -> None:
        for waiting in self._waiting:
            if waiting[0] is response:
                waiting[1] = header
                return
        self._send(response, header)


class Worker:
    """Daemon thread that runs jobs in order, until :func:`end_workers`; the node's executor receives the results."""

    def __init__(self, node: Node, name: str) -> None:
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

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            if self._ending:
                return
            try:
                result = job()
            except Exception as error:
                result = error
            self._results.put((done, result))
            if not self._ending and (executor := self._node.executor) is not None:
                executor.create_task(self._finish)  # not `done`: rclpy does not run tasks in order

    def _finish(self) -> None:
        done, result = self._results.get_nowait()
        done(result)


def end_workers(node: Node, timeout: float) -> bool:
    """End the worker threads of a node after their current jobs; return whether all ended within ``timeout`` s.

    A thread that still runs while the context and the interpreter end may block both.
    """
    deadline = time.monotonic() + timeout
    workers = [worker for worker in _WORKERS if worker._node is node]
    for worker in workers:
        worker._ending = True  # after the present job
        worker._jobs.put((_nothing, _nothing))  # wakes the thread
    for worker in workers:
        worker._thread.join(max(deadline - time.monotonic(), 0.0))
    return not any(worker._thread.is_alive() for worker in workers)


def _nothing(*_: Any) -> None:
    pass


_WORKERS: WeakSet[Worker] = WeakSet()


# Signals within this time are the same request: a service manager sends one to the launch and to its nodes, and the
# launch passes its own on, s.
_SAME_REQUEST = 0.25


class StopSignals:
    """Recorder of SIGINT, SIGTERM and SIGHUP, which raise an exception only inside :meth:`interrupting`.

    SIGHUP comes when a terminal is closed; it stays ignored if it is, as below nohup.

    Attributes:
        came: whether a signal has been received.
        insists: whether a second signal has been received later, so that the node must not wait.
    """

    def __init__(self) -> None:
        self.came = self.insists = False
        self._first = 0.0
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Context that raises KeyboardInterrupt once after a signal; also on entry if a signal was received."""
        self._interrupts = True
        try:
            if self.came:
                raise KeyboardInterrupt
            yield
        finally:
            self._interrupts = False

    def _note(self, *_: object) -> None:
        if self.came:
            self.insists |= time.monotonic() > self._first + _SAME_REQUEST
        else:
            self.came, self._first = True, time.monotonic()
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt
