# SPDX-License-Identifier: Apache-2.0
"""Replay of many bags on the cores of a machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from .job import Job
from .one import Outcome, run_job

_POLL = 0.1


class _Process:
    """What the processes of a pool share with the one that started them; set when a process begins.

    Attributes:
        fractions: of the bags in progress, by index; 1 for others.
        stop: an event on which to give up.
    """

    fractions: Any
    stop: Any


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Handle Ctrl-C at the end of the context; processes that are started in it never do."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
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
    try:
        return run_job(job, report)
    finally:
        _Process.fractions[index] = 1.0


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
    fractions = context.Array("d", [1.0] * (max(jobs) + 1), lock=False)
    stop = context.Event()
    executor = ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=context, initializer=_begin_process, initargs=(fractions, stop)
    )
    try:
        with _interrupts_held():
            futures = {executor.submit(_run_in_process, index, job): index for index, job in jobs.items()}
        collect(futures, jobs, outcomes, lambda: report([fraction for fraction in fractions if fraction < 1]))
    except BaseException:
        stop.set()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def collect(
    futures: Mapping[Future[Outcome], int],
    jobs: Mapping[int, Job],
    outcomes: dict[int, Outcome],
    report: Callable[[], None],
) -> None:
    """Take the outcomes of jobs, by index; a job whose process or worker was killed fails."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in done:
            index = futures[future]
            try:
                outcomes[index] = future.result()
            except Exception as error:  # of the pool or cluster: those of a replay are in its outcome
                reason = " ".join(str(error).split()) or type(error).__name__
                outcomes[index] = Outcome(jobs[index], error=f"{jobs[index].bag}: {reason}; go on with --resume")
        report()
