# SPDX-License-Identifier: Apache-2.0
"""The benchmarks are plain modules beside each other."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "bench"))
