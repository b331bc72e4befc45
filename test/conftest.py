# SPDX-License-Identifier: Apache-2.0
"""What all tests share: the helper modules, reproducible runs of Hypothesis, and the published values."""

import os
import sys
from pathlib import Path

# Before NumPy is loaded: with threads, a busy machine spends most of its time on waiting within 4 x 4 matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiled kernels of tests, and of the processes they start, stay out of the user's cache.
os.environ.setdefault("EOM_DYNAMICS_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "kernels"))

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from published import FILE, PublishedTrajectory

# The same examples at each run, and no deadline: a shared machine may stall in any of them.
settings.register_profile("eom_dynamics", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("eom_dynamics")


@pytest.fixture(scope="session")
def published() -> PublishedTrajectory:
    """Efforts of the iiwa from the published code, or a skip where the data is not there."""
    if not FILE.is_file():
        pytest.skip(f"the published values ({FILE.name}) are not beside this checkout")
    return PublishedTrajectory()
