# SPDX-License-Identifier: Apache-2.0
"""Thinned curves keep every peak, and only recorded samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eom_dynamics.tools.pages.charts import thinned

SAMPLES = arrays(float, st.integers(1, 300), elements=st.floats(-1e6, 1e6) | st.just(np.nan))


@given(SAMPLES, st.integers(4, 60))
def test_extremes_ends_and_order_are_kept(values: np.ndarray, points: int) -> None:
    kept = thinned(values, points)
    assert len(kept) <= max(points, 0) or len(kept) == len(values) <= points
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert np.all(np.diff(kept) > 0)
    if not np.isnan(values).all():
        assert np.nanmin(values[kept]) == np.nanmin(values)
        assert np.nanmax(values[kept]) == np.nanmax(values)


def test_the_envelope_of_the_samples_is_kept() -> None:
    t = np.linspace(0.0, 1.0, 60_001)
    values = np.sin(2 * np.pi * 900 * t) * np.sin(2 * np.pi * t)  # far more waves than points of a curve
    kept = thinned(values, 1000)
    bins = np.linspace(0.0, 1.0, 21)
    for low, high in itertools.pairwise(bins):
        inside, shown = (t >= low) & (t <= high), (t[kept] >= low) & (t[kept] <= high)
        # The extremes of a run across the edge of a bin may be in the next bin.
        assert np.max(values[kept][shown]) == pytest.approx(np.max(values[inside]), abs=0.02)
        assert np.min(values[kept][shown]) == pytest.approx(np.min(values[inside]), abs=0.02)


def test_gaps_are_kept() -> None:
    values = np.arange(10_000.0)
    values[4000:6000] = np.nan
    kept = thinned(values, 100)
    assert np.isnan(values[kept]).any()
    assert np.isnan(values[kept[(kept > 4200) & (kept < 5800)]]).all()
