# SPDX-License-Identifier: Apache-2.0
"""The system's C compiler: which one, and C source to a shared object in the cache."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from ..exceptions import KernelError
from .cache import cached, digest

# Products and sums may become fused operations: faster, and never less exact. Without vectorizing scalar code,
# which gains nothing, they become so in one state as they do in lanes, and both give the same bits.
FLAGS = ("-std=gnu11", "-O2", "-fno-tree-slp-vectorize", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared")

_CANDIDATES = ("cc", "gcc", "clang")

# A kernel compiles in seconds; a compiler that takes this long hangs.
_TIMEOUT_S = 300


def compiled(source: Callable[[], str], key: str, flags: Sequence[str] = ()) -> Path:
    """A shared object from C source, from the cache if it is there.

    Args:
        source: makes the source; not called where the cache has the result.
        key: digest of what the source depends on; compiler, flags and processor are added to it.
        flags: further flags.

    Raises:
        KernelError: there is no compiler, it failed, or the cache cannot be used.
    """
    compiler = find_compiler()
    command = [*compiler, *FLAGS, *flags]
    try:
        return cached(
            digest(key, _identity(compiler[0]), _processor(), *command), lambda path: _run(command, source(), path)
        )
    except OSError as error:
        raise KernelError(f"compiled kernels cannot be kept: {error}") from None


def find_compiler() -> list[str]:
    """The C compiler as a command: ``$CC``, or the first of cc, gcc and clang.

    Raises:
        KernelError: there is none, or ``$CC`` cannot be read as a command.
    """
    given = os.environ.get("CC", "")
    try:
        requested = shlex.split(given)
    except ValueError as error:
        raise KernelError(f"CC={given!r} is no command: {error}; correct or unset it") from None
    for command in [requested] if requested else [[name] for name in _CANDIDATES]:
        if path := shutil.which(command[0]):
            return [path, *command[1:]]
    wanted = f"CC={requested[0]}" if requested else ", ".join(_CANDIDATES)
    raise KernelError(f"no C compiler found ({wanted}); install gcc")


def _run(command: Sequence[str], source: str, output: Path) -> None:
    source_file = output.with_suffix(".c")
    source_file.write_text(source)
    code, said = _finished([*command, str(source_file), "-o", str(output)])
    if code != 0 or not output.exists():
        errors = [line for line in said.splitlines() if "error" in line] or said.splitlines()
        reason = errors[0].replace(str(source_file), "kernel") if errors else f"exit code {code}"
        raise KernelError(f"{command[0]} failed: {reason}")


def _finished(command: Sequence[str]) -> tuple[int, str]:
    """Exit code and stderr of a compiler; none of its processes outlives an exception here."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(timeout=_TIMEOUT_S)
        except BaseException as error:
            # A compiler starts programs of its own, any of which may be the one that hangs.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise KernelError(f"{command[0]} did not finish within {_TIMEOUT_S} s") from None
            raise
        return process.returncode, said


def _identity(compiler: str) -> str:
    """What changes when a compiler is replaced; asking it for its version would cost more than loading a kernel."""
    path = os.path.realpath(compiler)
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


@cache
def _processor() -> str:
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join([platform.machine(), *dict.fromkeys(line for line in lines if line.startswith(wanted))])
