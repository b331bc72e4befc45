# SPDX-License-Identifier: Apache-2.0
"""Replay of many bags, on the cores of a machine or on a Dask cluster whose workers see the same files.

Bags are independent of each other, and so are their failures. An output appears as a whole and stores its settings, so
that a bag is done if and only if its output exists: a killed process costs no more than the bag that it was working
on, which another one takes, and a command that is resumed does only what is missing.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from ...exceptions import EomDynamicsError
from ...extras import require
from ..bags import BagError
from ..contents import bag_hash, robot_hash
from ..robot_options import RobotOptions
from ..writing import TEMPORARY, FolderError
from .job import Job, Report
from .one import replay_bag
from .sinks import check_replaceable, provenance_of

SUFFIXES = (".db3", ".mcap")

# How often to try a bag whose process is killed.
_ATTEMPTS = 2

_POLL = 0.1

_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job.

    Attributes:
        job: the job.
        report: None if it failed.
        error: why it failed, on one line.
        detail: a traceback, if the error is internal.
        wall: duration, s.
        done_before: whether the output existed and was kept.
    """

    job: Job
    report: Report | None = None
    error: str = ""
    detail: str = ""
    wall: float = 0.0
    done_before: bool = False


def find_bags(path: Path) -> list[Path]:
    """Find the bags at a path: itself, or all in the folder and its subfolders, sorted.

    A folder is a bag if it has metadata.yaml, or if all its storage files are named after it, as those of a recorder
    that was killed.

    Raises:
        BagError: there are none.
    """
    if not path.is_dir() or _is_bag(path):
        return [path]
    found = list(_bags_in(path))
    if not found:
        raise BagError(f"{path}: has no bags in it")
    return found


def _is_bag(folder: Path) -> bool:
    if (folder / "metadata.yaml").is_file():
        return True
    files = [file for file in folder.iterdir() if _is_storage_file(file)]
    return bool(files) and all(file.name.startswith(f"{folder.name}_") for file in files)


def _is_storage_file(file: Path) -> bool:
    return file.name.removesuffix(".zstd").endswith(SUFFIXES) and file.is_file()


def _bags_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(TEMPORARY):
            continue
        if path.is_dir() and not path.is_symlink():
            if _is_bag(path):
                yield path
            else:
                yield from _bags_in(path)
        elif _is_storage_file(path):
            yield path


def replay_bags(
    jobs: Sequence[Job],
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Callable[[Sequence[float], Sequence[Outcome]], None] | None = None,
) -> list[Outcome]:
    """Replay bags in parallel.

    Args:
        jobs: one for each bag, each with an output of its own.
        processes: number of processes; by default one per core.
        scheduler: address of a Dask scheduler, to use a cluster instead of processes of this machine.
        resume: keep outputs that were made of the same contents of bag and robot, with the same settings and release.
        progress: called with the fractions of the bags in progress, and the outcomes so far.

    Returns:
        An outcome for each job, in their order.

    Raises:
        EomDynamicsError: the scheduler cannot be reached, or Dask is missing.
    """
    outcomes: dict[int, Outcome] = {}
    pending: dict[int, Job] = {}
    hash_of = cache(_robot_hash)
    for index, job in enumerate(jobs):
        settled = _settled(job, resume, hash_of)
        if settled is None:
            # An output that exists from here on was made by this command.
            pending[index] = replace(job, force=False)
        else:
            outcomes[index] = settled

    def report(fractions: Sequence[float]) -> None:
        if progress:
            progress(fractions, list(outcomes.values()))

    report([])
    if pending and scheduler is not None:
        _over_cluster(pending, outcomes, scheduler, report)
    elif pending:
        _over_cores(pending, outcomes, processes or os.cpu_count() or 1, report)
    return [outcomes[index] for index in range(len(jobs))]


def _robot_hash(source: str, options: RobotOptions) -> str:
    return robot_hash(options.load(source))


def _settled(job: Job, resume: bool, hash_of: Callable[[str, RobotOptions], str]) -> Outcome | None:
    """The outcome of a job whose output exists; None if the job has to be done."""
    if not os.path.lexists(job.output):
        return None
    if resume:
        return _done_before(job, hash_of)
    if not job.force:
        return Outcome(job, error=f"{job.output}: exists; keep it with --resume, or overwrite it with --force")
    try:
        check_replaceable(job)
    except FolderError as error:
        return Outcome(job, error=str(error))
    if job.output.is_dir():
        shutil.rmtree(job.output)
    else:
        job.output.unlink()
    return None


def _done_before(job: Job, hash_of: Callable[[str, RobotOptions], str] = _robot_hash) -> Outcome:
    """The outcome of a job whose output exists: its report, or as an error what it was made of instead."""
    provenance = provenance_of(job.output, job.format) or {}
    try:
        made, report = provenance["settings"], Report.from_json(provenance["report"])
        other = [name for name, value in job.settings().items() if made.get(name) != value]
        other += [name for name in made if name not in job.settings()]
        if report.bag_hash != bag_hash(job.bag):
            other.append("content of the bag")
        # A robot that the bag describes is part of it.
        if job.robot is not None and report.robot_hash != hash_of(job.robot, job.robot_options):
            other.append("content of the robot")
    except (KeyError, TypeError, AttributeError):
        other = ["release, or not an output of replay"]
    except OSError as error:
        return Outcome(job, error=f"{error.filename or job.bag}: {error.strerror or error}")
    except EomDynamicsError as error:
        return Outcome(job, error="; ".join(error.errors))
    if other:
        what = f"exists, but was not made of this bag with the same settings (other: {', '.join(other)})"
        return Outcome(job, error=f"{job.output}: {what}; remove it, or overwrite it with --force")
    return Outcome(job, report, done_before=True)


def run_job(job: Job, progress: Callable[[float], None] | None = None) -> Outcome:
    """Do one job; errors are in the outcome."""
    began = time.perf_counter()
    report, error, detail = None, "", ""
    try:
        report = replay_bag(job, progress)
    except EomDynamicsError as failure:
        # A cluster that took this process for lost may have had the job done by another one.
        if os.path.lexists(job.output) and (done := _done_before(job)).report is not None:
            return done
        error = "; ".join(failure.errors)
    except OSError as failure:
        error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure)
    except Exception as failure:
        error, detail = f"internal error: {type(failure).__name__}: {failure}", traceback.format_exc()
    return Outcome(job, report, error, detail, time.perf_counter() - began)


# --- On the cores of a machine ----------------------------------------------------------

_fractions: Any = None
_stop: Any = None


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
    global _fractions, _stop
    # Ctrl-C reaches the whole group; the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _fractions, _stop = fractions, stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a process whose parent was killed: it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_process(index: int, job: Job) -> Outcome:
    def report(fraction: float) -> None:
        _fractions[index] = fraction
        if _stop.is_set():
            raise KeyboardInterrupt

    report(0.0)
    return run_job(job, report)


def _over_cores(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], processes: int, report: Callable[[Sequence[float]], None]
) -> None:
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


# --- On a cluster -----------------------------------------------------------------------


def _over_cluster(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], address: str, report: Callable[[Sequence[float]], None]
) -> None:
    require("cluster")
    from distributed import Client, as_completed

    try:
        client = Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise EomDynamicsError(f"the Dask scheduler at {address} cannot be reached: {reason}") from None
    run = uuid.uuid4().hex
    with client:
        # pure=False: Dask must not reuse results, since those of a job are in its output.
        futures = {
            client.submit(run_job, job, key=f"eom_dynamics-replay-{index}-{run}", pure=False): index
            for index, job in jobs.items()
        }
        try:
            for future in as_completed(futures, loop=client.loop):
                index = futures[future]
                try:
                    outcomes[index] = future.result()
                except Exception as error:  # of the cluster: a worker that died too often, a package it lacks
                    outcomes[index] = Outcome(jobs[index], error=f"{jobs[index].bag}: {type(error).__name__}: {error}")
                future.release()
                report([])
        except BaseException:
            client.cancel(list(futures), force=True)
            raise
