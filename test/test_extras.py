# SPDX-License-Identifier: Apache-2.0
"""Optional libraries: a missing one is named with the extra of setup.cfg that installs it."""

from __future__ import annotations

import configparser
import re
import sys

import pytest
from paths import ROOT

from eom_dynamics.extras import EXTRAS, MissingLibraryError, require

DISTRIBUTIONS = {"collada": "pycollada", "distributed": "dask[distributed]"}
"""Names of distributions that differ from the name of the module."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_its_modules(extra: str) -> None:
    setup = configparser.ConfigParser(interpolation=configparser.BasicInterpolation())
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options.extras_require"][extra].splitlines()
    installed = {re.split(r"[<>=!~ ]", line.strip())[0] for line in lines}
    assert {DISTRIBUTIONS.get(module, module) for module in EXTRAS[extra]} <= installed


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingLibraryError, match=r"pyarrow is not installed; .* pip install 'eom_dynamics\[parquet\]'"
    ):
        require("parquet")
