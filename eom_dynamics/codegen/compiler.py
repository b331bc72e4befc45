# SPDX-License-Identifier: Apache-2.0
"""Compilation of C source to shared objects in the cache, by the C compiler of the system."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ..exceptions import KernelError
from .cache import cache_directory, digest, loadable

# Fused multiply-add is faster and more accurate. It is enabled on x86 only, where the same operations are fused for one
# state and in vector lanes, so that both give the same bits. The lanes of aarch64 lack an instruction for a b - c: in a
# b - c d, they fuse another product than scalar code.
_FUSED = "fast" if platform.machine() in ("x86_64", "AMD64") else "off"

# Vectorization of scalar code is off for the same reason, at no cost. Square roots are instructions only without errno.
FLAGS = (
    *("-std=gnu11", "-O2", "-fno-tree-slp-vectorize", "-fno-math-errno", "-march=native", f"-ffp-contract={_FUSED}"),
    *("-fPIC", "-shared"),
)

_CANDIDATES = {"CC": ("cc", "gcc", "clang"), "CXX": ("c++", "g++", "clang++")}

# Kernels compile in seconds; after this time the compiler counts as hung.
_TIMEOUT_S = 300


@contextlib.contextmanager
def compiled(
    source: Callable[[], str],
    key: str,
    flags: Sequence[str] = (),
    *,
    parts: Sequence[str] = (),
    meanwhile: Callable[[], object] = tuple,
) -> Iterator[Path]:
    """Shared object, compiled or cached, with the flags of ``$EOM_DYNAMICS_CFLAGS`` after all others.

    Args:
        source: returns the C source; called only on a cache miss.
        key: digest of everything that the source depends on; compiler, flags and processor are added to it.
        flags: additional compiler flags.
        parts: macros that select parts of the source; all parts are compiled in parallel.
        meanwhile: called while compilers run; a KernelError that it raises is ignored.

    Yields:
        Path of a private copy, valid in the context only.

    Raises:
        KernelError: no compiler is available, compilation failed, or the cache is unusable.
    """
    flags = [*FLAGS, *flags, *own_flags()]
    with contextlib.ExitStack() as stack:
        try:
            whole_key = key_of(key, *flags)
            path = stack.enter_context(
                loadable(whole_key, lambda output: _run(flags, source(), output, parts, meanwhile))
            )
        except OSError as error:
            raise uncached("kernels", error) from None
        yield path


def find_compiler(variable: str = "CC") -> list[str]:
    """Command of the C compiler: ``$CC``, or the first of cc, gcc and clang; with ``CXX``, of the C++ compiler.

    Raises:
        KernelError: no compiler is available, or the variable is not a valid command.
    """
    command_line, candidates = os.environ.get(variable, ""), _CANDIDATES[variable]
    try:
        requested = shlex.split(command_line)
    except ValueError as error:
        raise KernelError(f"{variable}={command_line!r} is not a valid command: {error}; correct or unset it") from None
    for command in [requested] if requested else [[name] for name in candidates]:
        if path := shutil.which(command[0]):
            return [path, *command[1:]]
    wanted = f"{variable}={requested[0]}" if requested else ", ".join(candidates)
    language, package = ("C", "gcc") if variable == "CC" else ("C++", "g++")
    raise KernelError(f"no {language} compiler found ({wanted}); install {package}")


def own_flags() -> list[str]:
    """User's compiler flags, ``$EOM_DYNAMICS_CFLAGS``."""
    return os.environ.get("EOM_DYNAMICS_CFLAGS", "").split()


def key_of(*parts: str) -> str:
    """Cache key of code compiled from parts, flags included, for this processor unless the user names another.

    Without a compiler, the key matches code of any compiler: a computer with a copied cache does not need one.
    """
    processor = "" if any(flag.startswith("-march=") for flag in own_flags()) else target_processor()
    try:
        command = find_compiler()
    except KernelError:
        return f"{digest(*parts, processor)}-*"
    return f"{digest(*parts, processor)}-{digest(*command, identity(command))[:8]}"


def require_compiler() -> list[str]:
    """Compiler of :func:`find_compiler` for code missing in the cache; the error names the cache as an alternative."""
    try:
        return find_compiler()
    except KernelError as error:
        instead = f"or copy {cache_directory()} from a computer with this processor that has run this robot"
        raise KernelError(f"{error}, {instead}") from None


def _run(
    flags: Sequence[str], source: str, output: Path, parts: Sequence[str], meanwhile: Callable[[], object]
) -> None:
    command = [*require_compiler(), *flags]
    source_file = output.with_suffix(".c")
    source_file.write_text(source)
    objects = {output.with_suffix(f".{part}"): ["-c", f"-D{part}"] for part in parts}
    with contextlib.ExitStack() as stack:
        for file, options in (objects or {output: []}).items():
            stack.enter_context(_running([*command, *options, str(source_file)], file))
        with contextlib.suppress(KernelError):
            meanwhile()
    if objects:
        run_compiler([*command, *map(str, objects)], output)


def run_compiler(command: Sequence[str], output: Path) -> None:
    """Run a compiler to write a file, with temporary files in the same folder. Kills its processes if interrupted.

    Raises:
        KernelError: the compiler failed or took too long.
    """
    with _running(command, output):
        pass


@contextlib.contextmanager
def _running(command: Sequence[str], output: Path) -> Iterator[None]:
    """Context with a compiler running as by :func:`run_compiler`; its end waits for the compiler."""
    with subprocess.Popen(
        [*command, "-o", str(output)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(output.parent)},
    ) as process:
        try:
            yield
            _, stderr = process.communicate(timeout=_TIMEOUT_S)
        except BaseException as error:
            # The whole process group, since the compiler starts others.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise KernelError(f"{command[0]} did not finish within {_TIMEOUT_S} s") from None
            raise
    if (code := process.returncode) != 0 or not output.exists():
        errors = [line for line in stderr.splitlines() if "error" in line] or stderr.splitlines()
        reason = errors[0].replace(str(output.with_suffix(".c")), "kernel") if errors else f"exit code {code}"
        raise KernelError(f"{command[0]} failed: {reason}")


def identity(command: Sequence[str]) -> str:
    """Path, size and date of each program in a compiler's command; reading its version takes longer than a kernel.

    For ``ccache gcc``, gcc is included; for a link to ccache named gcc, each gcc in the search path.
    """
    words = [word for word in command if not word.startswith("-")]
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    named = [os.path.join(folder, os.path.basename(word)) for word in words for folder in folders]
    paths = dict.fromkeys(os.path.realpath(path) for path in (command[0], *named) if os.path.isfile(path))
    return "\n".join(f"{path} {(status := os.stat(path)).st_size} {status.st_mtime_ns}" for path in paths)


def uncached(what: str, error: OSError) -> KernelError:
    """Message and remedy for code that cannot be written to the cache."""
    remedy = "" if "EOM_DYNAMICS_CACHE" in str(error) else "; set EOM_DYNAMICS_CACHE to a folder that you can write to"
    return KernelError(f"compiled {what} cannot be cached: {error}{remedy}")


@cache
def target_processor() -> str:
    """Properties of the processor that -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join([platform.machine(), *dict.fromkeys(line for line in lines if line.startswith(wanted))])
