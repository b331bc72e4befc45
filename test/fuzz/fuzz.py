# SPDX-License-Identifier: Apache-2.0
"""Fuzz one target with coverage, by atheris: ``fuzz.py TARGET CORPUS… [options of libFuzzer]``.

atheris counts the branches of this package that an input takes; one that takes new ones is kept, and mutated further.
The process ends with an exit code other than zero at the first input that breaks a promise, and writes it to a file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import atheris

LONGEST = 1.0  # CPU time of an input, s; one that takes longer hangs


def main() -> None:
    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here.parents[1])]
    name, *arguments = sys.argv[1:]
    with atheris.instrument_imports(include=["eom_dynamics", "targets"]):
        target = import_module(f"targets.{name}")

    def check(data: bytes) -> None:
        began = time.process_time()
        target.check(data)
        taken = time.process_time() - began
        assert taken < LONGEST, f"hangs: {taken:.2f} s"

    with tempfile.NamedTemporaryFile("w", suffix=".dict") as tokens:
        for token in target.TOKENS:
            tokens.write('"{}"\n'.format("".join(f"\\x{byte:02x}" for byte in token.encode("latin-1"))))
        tokens.flush()
        # The first inputs load libraries and compile code.
        for warm in (b"", b"\0" * 64):
            target.check(warm)
        words = [f"-dict={tokens.name}"] if target.TOKENS else []
        atheris.Setup([sys.argv[0], *words, *arguments], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
