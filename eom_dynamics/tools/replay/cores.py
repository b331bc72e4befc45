# SPDX-License-Identifier: Apache-2.0
"""Replay of many bags on the cores of a machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import Any

from .job import Job
from .one import Outcome, run_job

_ATTEMPTS = 2
"""How often to try a bag whose process is killed."""

_POLL = 0.1


class _Process:
    """What the processes of a pool share with the one that started them; set when a process begins.

    Attributes:
        fractions: of the bags, by index; negative for those that are not begun.
        stop: an event on which to give up.
    """

    fractions: Any
    stop: Any


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Handle Ctrl-C at the end of the context: the pool would not know of processes whose start is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: caught.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught and callable(before):
        before(*caught[0])


def _start_forkserver() -> None:
    """Start the process that others are copies of, and they, without Ctrl-C: it would end imports with a traceback."""
    resource_tracker.ensure_running()  # which unblocks the signal, and is not started again below
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process(fractions: Any, stop: Any) -> None:
    """Set up a process of the pool."""
    # Ctrl-C reaches the whole group; the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Process.fractions, _Process.stop = fractions, stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a process whose parent was killed: it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_process(index: int, job: Job) -> Outcome:
    def report(fraction: float) -> None:
        _Process.fractions[index] = fraction
        if _Process.stop.is_set():
            raise KeyboardInterrupt

    report(0.0)
    return run_job(job, report)


def over_cores(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], processes: int, report: Callable[[Sequence[float]], None]
) -> None:
    """Run jobs on the cores of this machine.

    Args:
        outcomes: takes the outcome of each job by its index.
        report: called with the fractions of the bags in progress.
    """
    # Processes start as copies of one that has imported this module, which takes longer than replaying a short bag.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    fractions = context.Array("d", max(jobs) + 1, lock=False)
    stop = context.Event()
    left, attempts = dict(jobs), Counter[int]()
    while left:
        for index in left:
            fractions[index] = -1.0  # not begun
        executor = ProcessPoolExecutor(
            min(processes, len(left)), mp_context=context, initializer=_begin_process, initargs=(fractions, stop)
        )
        try:
            with _uninterrupted():
                _start_forkserver()
                futures = {executor.submit(_run_in_process, index, job): index for index, job in left.items()}
            broken = _collect(futures, outcomes, lambda: report([x for x in fractions if 0 <= x < 1]))
        except BaseException:
            stop.set()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
        left = {index: job for index, job in left.items() if index not in outcomes}
        # A process was killed, and with it the pool: jobs in progress are lost.
        for index in [index for index in left if fractions[index] >= 0] or list(left):
            attempts[index] += 1
            if attempts[index] >= _ATTEMPTS:
                outcomes[index] = Outcome(left.pop(index), error=f"{jobs[index].bag}: its process was killed: {broken}")
        report([])


def _collect(futures: dict[Future[Outcome], int], outcomes: dict[int, Outcome], report: Callable[[], None]) -> str:
    """Take the outcomes of the pool; returns why it broke."""
    broken = ""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                outcomes[futures[future]] = future.result()
            except BrokenProcessPool as error:
                broken = str(error)
        report()
    return broken
