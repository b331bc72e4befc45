# SPDX-License-Identifier: Apache-2.0
"""Replay of bags and folders of bags, on the cores of a machine or on a Dask cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from ...exceptions import EomDynamicsError, require
from ...recordings.bags import BagError, find_bags
from ...recordings.bags.bag import ENDINGS
from .job import Job
from .one import Outcome, attempt, run_job

_CONNECT_TIMEOUT = 10.0

# Called with the number of bags replayed so far, in fractions of a bag, and their total number.
Progress = Callable[[float, int], None]


def replay(
    bags: Sequence[Path], output: Path, settings: Job, *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Outcome]:
    """Replay bags and compare the outputs.

    A single bag is replayed in this process, and its errors are raised. Several, or those in folders, are replayed in
    parallel, each into an output of its name in the folder ``output``, and their errors are part of the outcomes.

    Args:
        bags: bags and folders of bags.
        settings: of each replay; its ``bag`` and ``output`` are replaced, and with several bags its golden bag is a
            folder of those with the names of the outputs.
        scheduler: address of a Dask scheduler, to use a cluster instead of the cores of this machine.
        progress: called with the number of bags replayed so far, in fractions of a bag, and their total number.

    Returns:
        An outcome for each bag.

    Raises:
        BagError: there are no bags, or two would have the same output.
        EomDynamicsError: a single bag cannot be replayed, or the scheduler cannot be reached.
        OSError: a file cannot be read.
    """
    if len(bags) == 1 and find_bags(bags[0]) == list(bags) and scheduler is None:
        return [run_job(replace(settings, bag=bags[0], output=output), progress and (lambda share: progress(share, 1)))]
    if output.suffix in (*ENDINGS, ".parquet"):
        raise BagError(f"{output}: is the name of a file; several bags are replayed into a folder, name one")
    return replay_bags(_jobs(bags, output, settings), scheduler=scheduler, progress=progress)


def replay_bags(
    jobs: Sequence[Job], *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Outcome]:
    """Replay bags in parallel; arguments as of :func:`replay`. Returns an outcome for each job, in their order."""
    with _executor(scheduler) as executor:
        futures = [executor.submit(attempt if scheduler else _attempt_in_pool, job) for job in jobs]
        for done, _ in enumerate(as_completed(futures), 1):
            if progress:
                progress(done, len(jobs))
        return [_outcome(job, future) for job, future in zip(jobs, futures, strict=True)]


def _begin_in_pool() -> None:
    """Have a process of the pool end by SystemExit where the pool ends it, since another one was killed."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    # Ctrl-C reaches all processes of a terminal: only the first reacts, and the pool's processes complete their bags.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)


def _attempt_in_pool(job: Job) -> Outcome:
    """Replay a bag; a process that the pool ends leaves no temporary folder."""
    try:
        return attempt(job)
    except SystemExit as ended:
        os._exit(int(ended.code or 0))  # the pool would have this process wait for another job


def _outcome(job: Job, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # a process or worker was killed: errors of a replay are in its outcome
        reason = " ".join(str(error).split()) or type(error).__name__
        return Outcome(job, error=f"{job.bag}: {reason}; go on with --resume")


@contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor]:
    """The cores of this machine, or a Dask cluster; jobs that have not begun are cancelled on an error."""
    if scheduler is None:
        # Processes start as copies of one that has imported this module, which takes longer than a short bag.
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        with ProcessPoolExecutor(mp_context=context, initializer=_begin_in_pool) as executor:
            try:
                yield executor
            except BaseException:
                executor.shutdown(cancel_futures=True)
                raise
        return
    require("cluster")
    from distributed import Client

    try:
        client = Client(scheduler, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise EomDynamicsError(f"the Dask scheduler at {scheduler} cannot be reached: {reason}") from None
    with client:
        # pure=False: Dask must not reuse results, since a job writes its results to its output.
        yield client.get_executor(pure=False)


def _jobs(bags: Sequence[Path], folder: Path, settings: Job) -> list[Job]:
    jobs: dict[Path, Job] = {}
    for path in bags:
        for bag in find_bags(path):
            name = bag.relative_to(path) if bag != path else Path(bag.name)
            stem = name.name
            for suffix in (".zstd", *ENDINGS):
                stem = stem.removesuffix(suffix)
            place = name.parent / (f"{stem}.parquet" if settings.format == "parquet" else stem)
            if place in jobs:
                raise BagError(
                    f"{bag} and {jobs[place].bag} would have the same output {folder / place}; replay them separately"
                )
            golden = settings.golden and replace(settings.golden, path=settings.golden.path / place)
            jobs[place] = replace(settings, bag=bag, output=folder / place, golden=golden)
    return list(jobs.values())
