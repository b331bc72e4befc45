# SPDX-License-Identifier: Apache-2.0
"""Exported functions of CasADi, loaded from their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exported import ROBOTS, export, robot

casadi = pytest.importorskip("casadi")


@pytest.mark.parametrize("name", ROBOTS)
def test_loads_with_named_arguments_and_computes_the_closed_form(name: str, tmp_path: Path) -> None:
    exported, stored = export(robot(name), "casadi", tmp_path)
    assert len(list(tmp_path.iterdir())) == len(exported.programs)
    for program in exported.programs.values():
        function = casadi.Function.load(str(tmp_path / f"{program.name}.casadi"))
        assert function.name() == program.name
        assert function.name_in() == list(program.inputs)
        assert function.name_out() == list(program.outputs)
        results = function(**{name: stored.inputs[name].T for name in program.inputs})
        for output in program.outputs:
            expected = stored.outputs[output].T
            np.testing.assert_allclose(np.array(results[output]), expected, rtol=0, atol=stored.tolerance(output))
