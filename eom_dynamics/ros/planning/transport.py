# SPDX-License-Identifier: Apache-2.0
"""Transport of large answers: the profile of Fast DDS."""

from __future__ import annotations

import os
from pathlib import Path

_PROFILE = Path(__file__).with_name("fast_dds.xml")

# Fast DDS 2 and 3 read a file named by the first two, or in the working directory.
_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_FILES = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")


def share_memory() -> None:
    """Have Fast DDS send answers through 32 MiB of shared memory, unless the user has chosen a profile or a transport.

    Its default of 512 KiB holds a fraction of an answer. The rest waits for a heartbeat, up to 3 s, as soon as several
    planners call, and now and then an answer is lost. It must be called before the first context is initialised; other
    middleware ignores it. Where there is not as much shared memory, Fast DDS says so and uses UDP.
    """
    chosen = any(os.environ.get(name) for name in (*_VARIABLES, "FASTDDS_BUILTIN_TRANSPORTS"))
    if not chosen and not any(Path(name).exists() for name in _FILES):
        os.environ.update(dict.fromkeys(_VARIABLES, str(_PROFILE)))
