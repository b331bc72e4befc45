# SPDX-License-Identifier: Apache-2.0
"""``python -m eom_dynamics``, the command ``eom_dynamics``."""

from .tools.cli.main import main

raise SystemExit(main())
