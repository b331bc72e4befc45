# SPDX-License-Identifier: Apache-2.0
"""A Dask worker as the target of a process."""

import asyncio


def run_worker(address: str, folder: str) -> None:
    """Work for a scheduler in one thread, with temporary files in a folder, until killed."""
    from distributed import Worker

    async def run() -> None:
        async with Worker(address, nthreads=1, local_directory=folder, dashboard_address=":0") as worker:
            await worker.finished()

    asyncio.run(run())
