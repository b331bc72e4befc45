# SPDX-License-Identifier: Apache-2.0
"""Replay of bags and folders of bags, with comparison of each output with its golden bag.

Many bags are replayed on the cores of a machine or on a Dask cluster whose workers see the same files. An output
appears as a whole and stores its settings, so that a bag is done if and only if its output exists: a killed process
costs no more than the bag that it was working on, and a command that is resumed does only what is missing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...bags import Bag, BagError
from ...bags.bag import ENDINGS, METADATA, is_storage
from ...exceptions import EomDynamicsError
from ...extras import require
from ..writing import TEMPORARY
from .compare import Tolerances, check_golden, check_golden_table, compare_bags, compare_tables
from .job import Job, read_manifest
from .one import Outcome, done_before, loaded_robot_hash, replay_bag, run_job
from .outputs import output_topics
from .sources import choose_topic

_FILES = (*ENDINGS, ".parquet")

Progress = Callable[[float, int], None]


@dataclass(frozen=True)
class Golden:
    """Golden output, or a folder of golden outputs by name, and how to compare with them.

    Attributes:
        path: of the bag, the Parquet table, or the folder of them.
        tolerances: allowed differences.
        match: as for :func:`.compare_bags`.
    """

    path: Path
    tolerances: Tolerances = field(default_factory=Tolerances)
    match: str = "recorded"


def replay(
    bags: Sequence[Path],
    output: Path,
    settings: Job,
    golden: Golden | None = None,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Replay bags and compare the outputs.

    A single bag is replayed in this process, and its errors are raised. Several, or those in folders, are replayed in
    parallel, each into an output of its name in the folder ``output``, and their errors are part of the outcomes.

    Args:
        bags: bags and folders of bags.
        settings: of each replay; its ``bag`` and ``output`` are replaced.
        golden: what to compare with.
        processes, scheduler, resume: as for :func:`replay_bags`.
        progress: called with the number of bags replayed so far, in fractions of a bag, and their total number.

    Returns:
        An outcome for each bag.

    Raises:
        BagError: there are no bags, two would have the same output, or none of the golden bags can be compared with.
        EomDynamicsError: a single bag cannot be replayed, or the scheduler cannot be reached.
        OSError: a file cannot be read.
    """
    single = len(bags) == 1 and find_bags(bags[0]) == list(bags)
    if not single and output.suffix in _FILES:
        raise BagError(f"{output}: is the name of a file; several bags are replayed into a folder, name one")
    jobs = [replace(settings, bag=bags[0], output=output)] if single else _jobs(bags, output, settings)
    goldens: dict[Job, Path] = {}
    if golden:
        goldens = {job: golden.path if single else golden.path / job.output.relative_to(output) for job in jobs}
    for job, path in goldens.items():
        if path.resolve() == job.output.resolve():
            raise BagError(f"golden bag {path}: is the output itself; name another golden bag, or another output")
    refused = _refused(goldens)
    if single and not (scheduler or resume):
        began = time.perf_counter()
        report = replay_bag(jobs[0], progress and (lambda share: progress(share, 1)))
        outcomes = [Outcome(jobs[0], report, wall=time.perf_counter() - began)]
    else:
        folder = None if single else output.absolute()
        accepted = {
            job: replace(job, bag=job.bag.absolute(), output=job.output.absolute(), folder=folder)
            for job in jobs
            if job not in refused
        }
        replayed = replay_bags(
            list(accepted.values()),
            processes=processes,
            scheduler=scheduler,
            resume=resume,
            progress=progress and (lambda shares, done: progress(len(done) + sum(shares), len(accepted))),
        )
        by_job = {job: replace(outcome, job=job) for job, outcome in zip(accepted, replayed, strict=True)}
        outcomes = [by_job[job] if job in by_job else Outcome(job, error=refused[job]) for job in jobs]
    compare = compare_tables if settings.format == "parquet" else compare_bags
    for k, outcome in enumerate(outcomes):
        if golden and outcome.report:
            differences = compare(outcome.job.output, goldens[outcome.job], golden.tolerances, golden.match)
            outcomes[k] = replace(outcome, differences=differences)
    return outcomes


def _jobs(bags: Sequence[Path], folder: Path, settings: Job) -> list[Job]:
    taken: dict[Path, Path] = {}
    for path in bags:
        for bag in find_bags(path):
            name = bag.relative_to(path) if bag != path else Path(bag.name)
            stem = name.name
            for suffix in (".zstd", *ENDINGS):
                stem = stem.removesuffix(suffix)
            output = folder / name.parent / (f"{stem}.parquet" if settings.format == "parquet" else stem)
            if output in taken:
                raise BagError(f"{bag} and {taken[output]} would have the same output {output}; replay them separately")
            taken[output] = bag
    return [replace(settings, bag=bag, output=output) for output, bag in taken.items()]


def _refused(goldens: dict[Job, Path]) -> dict[Job, str]:
    """Return why golden bags cannot be compared with, by job; bags that cannot be read are left to the replay."""
    refused: dict[Job, str] = {}
    usable = False
    for job, golden in goldens.items():
        try:
            with Bag(job.bag) as bag:
                namespace = choose_topic(bag, job.topic).name.rpartition("/")[0]
        except (BagError, OSError):
            continue
        try:
            if job.format == "parquet":
                check_golden_table(golden)
            else:
                check_golden(golden, output_topics(namespace))
        except BagError as error:
            refused[job] = str(error)
        else:
            usable = True
    if refused and not usable:
        raise BagError(next(iter(refused.values())))
    return refused


_POLL = 0.1
_CONNECT_TIMEOUT = 10.0

# What a process of the pool shares with the one that started it: the fractions of the bags in progress by index, 1 for
# others, and an event on which to give up.
_shared = SimpleNamespace()

# Futures of jobs with their indices, and a function for the fractions of the bags in progress.
_Running = tuple[dict[Future[Outcome], int], Callable[[], Sequence[float]]]


def find_bags(path: Path) -> list[Path]:
    """Find the bags at a path: itself, or all in the folder and its subfolders, sorted.

    A folder is a bag if it has metadata.yaml, or if all its storage files are named after it, as those of a recorder
    that was killed. Raises BagError if there are none.
    """
    if not path.is_dir() or _is_bag(path):
        return [path]
    bags = list(_bags_in(path))
    if not bags:
        raise BagError(f"{path}: has no bags in it")
    return bags


def _is_bag(folder: Path) -> bool:
    if (folder / METADATA).is_file():
        return True
    files = [file for file in folder.iterdir() if is_storage(file) and file.is_file()]
    return bool(files) and all(file.name.startswith(f"{folder.name}_") for file in files)


def _bags_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(TEMPORARY):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from [path] if _is_bag(path) else _bags_in(path)
        elif is_storage(path) and path.is_file():
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
    hash_of, made = cache(loaded_robot_hash), cache(read_manifest)
    for index, job in enumerate(jobs):
        if os.path.lexists(job.output) and resume:
            outcomes[index] = done_before(job, made(job.manifest), hash_of)
        elif os.path.lexists(job.output) and not job.force:
            reason = "exists; keep it with --resume, or overwrite it with --force"
            outcomes[index] = Outcome(job, error=f"{job.output}: {reason}")
    pending = {index: job for index, job in enumerate(jobs) if index not in outcomes}

    def report(fractions: Sequence[float] = ()) -> None:
        if progress:
            progress(fractions, list(outcomes.values()))

    report()
    if pending:
        pool = _cores(pending, processes or os.cpu_count() or 1) if scheduler is None else _cluster(pending, scheduler)
        with pool as (futures, fractions):
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    index = futures[future]
                    job = jobs[index]
                    try:
                        outcomes[index] = future.result()
                    except Exception as error:  # a process or worker was killed: errors of a replay are in its outcome
                        reason = " ".join(str(error).split()) or type(error).__name__
                        outcomes[index] = Outcome(job, error=f"{job.bag}: {reason}; go on with --resume")
                report(fractions())
    return [outcomes[index] for index in range(len(jobs))]


@contextmanager
def _cores(jobs: Mapping[int, Job], processes: int) -> Iterator[_Running]:
    # Processes start as copies of one that has imported this module, which takes longer than replaying a short bag.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    fractions = context.Array("d", [1.0] * (max(jobs) + 1), lock=False)
    stop = context.Event()
    executor = ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=context, initializer=_begin_process, initargs=(fractions, stop)
    )
    try:
        # Processes that start with Ctrl-C blocked never handle it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            futures = {executor.submit(_run_in_process, index, job): index for index, job in jobs.items()}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield futures, lambda: [fraction for fraction in fractions if fraction < 1]
    except BaseException:
        stop.set()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin_process(fractions: Any, stop: Any) -> None:
    # Ctrl-C reaches the whole group; the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared.fractions, _shared.stop = fractions, stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a process whose parent was killed: it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_process(index: int, job: Job) -> Outcome:
    def report(fraction: float) -> None:
        _shared.fractions[index] = fraction
        if _shared.stop.is_set():
            raise KeyboardInterrupt

    report(0.0)
    try:
        return run_job(job, report)
    finally:
        _shared.fractions[index] = 1.0


@contextmanager
def _cluster(jobs: Mapping[int, Job], address: str) -> Iterator[_Running]:
    """Run jobs on a Dask cluster; fractions of bags are unknown."""
    require("cluster")
    from distributed import Client

    try:
        client = Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise EomDynamicsError(f"the Dask scheduler at {address} cannot be reached: {reason}") from None
    with client:
        # pure=False: Dask must not reuse results, since those of a job are in its output.
        executor = client.get_executor(pure=False)
        try:
            yield {executor.submit(run_job, job): index for index, job in jobs.items()}, list
        finally:
            executor.shutdown(wait=False)  # cancels what is left
