# SPDX-License-Identifier: Apache-2.0
"""Exported CasADi functions, loaded from their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exported import FUNCTIONS, export, robot

casadi = pytest.importorskip("casadi")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, tmp_path: Path) -> None:
    """Load, have named arguments, and agree with the closed form."""
    exported, stored = export(robot(name), "casadi", tmp_path, FUNCTIONS[name])
    assert len(list(tmp_path.iterdir())) == len(exported.programs)
    for key, program in exported.programs.items():
        function = casadi.Function.load(str(tmp_path / f"{program.name}.casadi"))
        assert function.name() == program.name
        assert function.name_in() == list(program.inputs)
        assert function.name_out() == list(program.outputs)
        results = function(**{name: stored.inputs[name].T for name in program.inputs})
        for output in program.outputs:
            errors = np.abs(np.array(results[output]) - stored.outputs[key][output].T)
            assert np.all(errors <= stored.tolerance(key, output))
