# SPDX-License-Identifier: Apache-2.0
"""The set-up scripts are plain modules beside each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
