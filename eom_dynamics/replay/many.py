# SPDX-License-Identifier: Apache-2.0
"""Many bags: over the cores of a machine, or over a Dask cluster whose workers see the same files.

Bags are independent of each other, and so are their failures. An output appears as a whole and says what it was made
of, so that a bag is done if and only if its output is there: a process that is killed costs no more than the bag it was
at, which another one takes, and a command that is resumed does only what is left.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..bags import BagError
from ..exceptions import EomDynamicsError
from ..writing import ASIDE, FolderError, sweep
from .job import Job, Report
from .one import replay_bag
from .sinks import check_replaceable, remark_of, require

SUFFIXES = (".db3", ".mcap")

# How often a bag is tried whose process was killed.
_ATTEMPTS = 2

_POLL = 0.1

_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes:
        job: what was to be done.
        report: None where it failed.
        error: why it failed, on one line.
        detail: a traceback, where the error is one of this program.
        wall: time that it took, s.
        done_before: whether the output was there already, and is left as it is.
    """

    job: Job
    report: Report | None = None
    error: str = ""
    detail: str = ""
    wall: float = 0.0
    done_before: bool = False


def find_bags(path: Path) -> list[Path]:
    """The bags at a path: itself, or else all in the folder and its folders, sorted.

    A folder is a bag if it has metadata.yaml, or if its files have its name, as those of a recorder that was killed.

    Raises:
        BagError: there is none.
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
    files = [file for file in folder.iterdir() if _is_file_of_bag(file)]
    return bool(files) and all(file.name.startswith(f"{folder.name}_") for file in files)


def _is_file_of_bag(file: Path) -> bool:
    return file.name.removesuffix(".zstd").endswith(SUFFIXES) and file.is_file()


def _bags_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(ASIDE):
            continue
        if path.is_dir() and not path.is_symlink():
            if _is_bag(path):
                yield path
            else:
                yield from _bags_in(path)
        elif _is_file_of_bag(path):
            yield path


def replay_bags(
    jobs: Sequence[Job],
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Callable[[Sequence[float], Sequence[Outcome]], None] | None = None,
) -> list[Outcome]:
    """Replay bags side by side.

    Args:
        jobs: one for each bag, with an output of its own.
        processes: how many; by default one for each core.
        scheduler: address of a Dask scheduler, instead of processes of this machine.
        resume: whether outputs that are there, and were made by the same settings, are taken as they are.
        progress: is told the shares of bags that are under way, and the outcomes so far.

    Returns:
        An outcome for each job, in their order.

    Raises:
        EomDynamicsError: the scheduler cannot be reached, or Dask is missing.
    """
    outcomes: dict[int, Outcome] = {}
    pending: dict[int, Job] = {}
    for index, job in enumerate(jobs):
        settled = _settled(job, resume)
        if settled is None:
            # What is there by now was made by this command.
            pending[index] = replace(job, force=False)
        else:
            outcomes[index] = settled

    def tell(shares: Sequence[float]) -> None:
        if progress:
            progress(shares, list(outcomes.values()))

    tell([])
    try:
        if pending and scheduler is not None:
            _over_cluster(pending, outcomes, scheduler, tell)
        elif pending:
            _over_cores(pending, outcomes, processes or os.cpu_count() or 1, tell)
    finally:
        for folder in {job.output.parent for job in jobs}:
            sweep(folder)
    return [outcomes[index] for index in range(len(jobs))]


def _settled(job: Job, resume: bool) -> Outcome | None:
    """The outcome of a job whose output is there; None where it is to be done."""
    if not os.path.lexists(job.output):
        return None
    if resume:
        return _done_before(job) or Outcome(
            job, error=f"{job.output}: is there, but was not made of this bag by the same settings: remove it"
        )
    if not job.force:
        return Outcome(job, error=f"{job.output}: is there already; --resume keeps it, --force makes it anew")
    try:
        check_replaceable(job)
    except FolderError as error:
        return Outcome(job, error=str(error))
    if job.output.is_dir():
        shutil.rmtree(job.output)
    else:
        job.output.unlink()
    return None


def _done_before(job: Job) -> Outcome | None:
    remark = remark_of(job.output, job.format)
    if remark is None or remark.get("settings") != job.settings():
        return None
    return Outcome(job, Report.from_json(remark["report"]), done_before=True)


def run_job(job: Job, progress: Callable[[float], None] | None = None) -> Outcome:
    """Do one job; whatever fails is in the outcome."""
    began = time.perf_counter()
    report, error, detail = None, "", ""
    try:
        report = replay_bag(job, progress)
    except EomDynamicsError as failure:
        # Another process can have been faster, where a cluster took this one for lost.
        if done := _done_before(job) if os.path.lexists(job.output) else None:
            return done
        error = str(failure)
    except OSError as failure:
        error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure)
    except Exception as failure:
        error, detail = f"internal error: {type(failure).__name__}: {failure}", traceback.format_exc()
    return Outcome(job, report, error, detail, time.perf_counter() - began)


# --- Over cores -------------------------------------------------------------------------

_shares: Any = None
_stop: Any = None


def _begin_process(shares: Any, stop: Any) -> None:
    """In a process of the pool: Ctrl-C is for the one that started it."""
    global _shares, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shares, _stop = shares, stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A process that waits for work does not see that the one that would give it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_process(index: int, job: Job) -> Outcome:
    def tell(share: float) -> None:
        _shares[index] = share
        if _stop.is_set():
            raise KeyboardInterrupt

    tell(0.0)
    return run_job(job, tell)


def _over_cores(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], processes: int, tell: Callable[[Sequence[float]], None]
) -> None:
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", max(jobs) + 1, lock=False)
    stop = context.Event()
    left, attempts = dict(jobs), Counter[int]()
    while left:
        for index in left:
            shares[index] = -1.0  # not begun
        executor = ProcessPoolExecutor(
            min(processes, len(left)), mp_context=context, initializer=_begin_process, initargs=(shares, stop)
        )
        try:
            futures = {executor.submit(_run_in_process, index, job): index for index, job in left.items()}
            broken = _collect(futures, outcomes, lambda: tell([share for share in shares if 0 <= share < 1]))
        except BaseException:
            stop.set()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
        left = {index: job for index, job in left.items() if index not in outcomes}
        # A process was killed, and all that the others were at is lost with it.
        for index in [index for index in left if shares[index] >= 0] or list(left):
            attempts[index] += 1
            if attempts[index] >= _ATTEMPTS:
                outcomes[index] = Outcome(left.pop(index), error=f"{jobs[index].bag}: its process was killed: {broken}")
        tell([])


def _collect(futures: dict[Future[Outcome], int], outcomes: dict[int, Outcome], tell: Callable[[], None]) -> str:
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
        tell()
    return broken


# --- Over a cluster ---------------------------------------------------------------------


def _over_cluster(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], address: str, tell: Callable[[Sequence[float]], None]
) -> None:
    require("distributed")
    from distributed import Client, as_completed

    try:
        client = Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise EomDynamicsError(f"the Dask scheduler at {address} cannot be reached: {reason}") from None
    run = uuid.uuid4().hex
    with client:
        # Not by number of calls but once each: what a job leaves is in its output.
        futures = {
            client.submit(run_job, job, key=f"eom_dynamics-replay-{index}-{run}", pure=False): index
            for index, job in jobs.items()
        }
        try:
            for future in as_completed(futures, loop=client.loop):
                index = futures[future]
                try:
                    outcomes[index] = future.result()
                except Exception as error:  # the cluster's: a worker that died too often, a package it lacks
                    outcomes[index] = Outcome(jobs[index], error=f"{jobs[index].bag}: {type(error).__name__}: {error}")
                future.release()
                tell([])
        except BaseException:
            client.cancel(list(futures), force=True)
            raise
