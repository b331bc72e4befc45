# SPDX-License-Identifier: Apache-2.0
"""Replay of many bags on a Dask cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from ...exceptions import EomDynamicsError
from ...extras import require
from .job import Job
from .outcomes import Outcome, run_job

_CONNECT_TIMEOUT = 10.0


def over_cluster(
    jobs: dict[int, Job], outcomes: dict[int, Outcome], address: str, report: Callable[[Sequence[float]], None]
) -> None:
    """Do jobs on a Dask cluster; arguments as of :func:`.cores.over_cores`, with the address of the scheduler.

    Raises:
        EomDynamicsError: the scheduler cannot be reached, or Dask is missing.
    """
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
