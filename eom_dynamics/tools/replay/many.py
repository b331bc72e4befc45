# SPDX-License-Identifier: Apache-2.0
"""Replay of many bags, on the cores of a machine or on a Dask cluster whose workers see the same files.

Bags are independent of each other, and so are their failures. An output appears as a whole and stores its settings, so
that a bag is done if and only if its output exists: a killed process costs no more than the bag that it was working
on, which another one takes, and a command that is resumed does only what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ...bags import BagError
from ...bags.bag import METADATA, is_storage
from ...exceptions import EomDynamicsError
from ...extras import require
from ..robot_options import RobotOptions
from ..writing import TEMPORARY
from .cores import collect, over_cores
from .job import Job
from .manifest import Manifest, read_manifest
from .one import Outcome, done_before, loaded_robot_hash, run_job

_CONNECT_TIMEOUT = 10.0


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
    if (folder / METADATA).is_file():
        return True
    files = [file for file in folder.iterdir() if is_storage(file) and file.is_file()]
    return bool(files) and all(file.name.startswith(f"{folder.name}_") for file in files)


def _bags_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(TEMPORARY):
            continue
        if path.is_dir() and not path.is_symlink():
            if _is_bag(path):
                yield path
            else:
                yield from _bags_in(path)
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
    pending: dict[int, Job] = {}
    hash_of, made = cache(loaded_robot_hash), cache(read_manifest)
    for index, job in enumerate(jobs):
        settled = _settled(job, resume, hash_of, made)
        if settled is None:
            pending[index] = job
        else:
            outcomes[index] = settled

    def report(fractions: Sequence[float]) -> None:
        if progress:
            progress(fractions, list(outcomes.values()))

    report([])
    if pending and scheduler is not None:
        _over_cluster(pending, outcomes, scheduler, report)
    elif pending:
        over_cores(pending, outcomes, processes or os.cpu_count() or 1, report)
    return [outcomes[index] for index in range(len(jobs))]


def _settled(
    job: Job, resume: bool, hash_of: Callable[[str, RobotOptions], str], made: Callable[[Path], Manifest]
) -> Outcome | None:
    """The outcome of a job whose output exists; None if the job has to be done."""
    if not os.path.lexists(job.output):
        return None
    if resume:
        return done_before(job, made(job.manifest), hash_of)
    if not job.force:
        return Outcome(job, error=f"{job.output}: exists; keep it with --resume, or overwrite it with --force")
    return None


def _over_cluster(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], address: str, report: Callable[[Sequence[float]], None]
) -> None:
    """Do jobs on a Dask cluster; arguments as of :func:`.cores.over_cores`, with the address of the scheduler."""
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
            futures = {executor.submit(run_job, job): index for index, job in jobs.items()}
            collect(futures, jobs, outcomes, lambda: report([]))
        finally:
            executor.shutdown(wait=False)  # cancels what is left
