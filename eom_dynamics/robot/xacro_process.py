# SPDX-License-Identifier: Apache-2.0
"""The process that expands a xacro file: ``python -m eom_dynamics.robot.xacro_process FILE [NAME:=VALUE …]``.

Once everything is imported, an audit hook refuses all that a description has no need of: to write, to start
processes, to use the network, and to read outside of the folders allowed. Python asks the hook whatever way a
xacro expression finds to such a function.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import Any

from ..exceptions import RobotDescriptionError
from .files import read_text
from .xml import MAX_CHARACTERS, parse

# Beyond what the process has when it begins, in bytes.
_MEMORY = 500_000_000
_FORBIDDEN = ("ctypes", "ftplib", "http", "os", "pty", "shutil", "signal", "socket", "sqlite3", "subprocess", "urllib")
_HARMLESS = ("os.listdir", "os.scandir", "os.fwalk", "os.walk")


def main(path: Path, arguments: dict[str, str]) -> str:
    """The expanded text of a file.

    Raises:
        RobotDescriptionError: a file is not XML, has a document type declaration, or lies outside of the folders
            allowed.
        Exception: whatever xacro finds wrong.
    """
    import xacro
    import yaml  # noqa: F401  that xacro imports later otherwise
    from xacro import substitution_args  # noqa: F401

    with contextlib.suppress(ImportError):  # then $(find …) fails, and says so
        import ament_index_python.packages  # noqa: F401

    folders = _folders(path)
    parse_unguarded = xacro.parse

    def parse_guarded(text: Any, filename: str | None = None) -> Any:
        if text is None and filename is not None:
            _check(filename, folders)
            text = read_text(Path(filename), MAX_CHARACTERS)
            parse(text, os.path.basename(filename))
        return parse_unguarded(text, filename)

    xacro.parse = parse_guarded
    _bound_memory()
    sys.addaudithook(lambda event, details: _audit(event, details, folders))
    document = xacro.process_file(str(path), mappings=arguments, verbosity=0)
    text: str = document.documentElement.toxml()
    return text


def _bound_memory() -> None:
    with contextlib.suppress(OSError):  # not on Linux
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _folders(path: Path) -> list[str]:
    """Where a description may read: its own package, or folder where it has no package, and installed packages."""
    own = path.resolve().parent
    package = next((folder for folder in (own, *own.parents) if (folder / "package.xml").is_file()), own)
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    return [str(package), *(os.path.realpath(os.path.join(prefix, "share")) for prefix in prefixes)]


def _check(path: Any, folders: list[str]) -> None:
    real = os.path.realpath(path)
    if not any(os.path.commonpath([real, folder]) == folder for folder in folders):
        raise RobotDescriptionError(f"reads {os.fspath(path)!r:.200}, outside of {' and '.join(folders)}")


def _audit(event: str, details: tuple[Any, ...], folders: list[str]) -> None:
    if event == "open":
        path, mode, flags = details
        if (isinstance(mode, str) and set(mode) & set("wax+")) or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise RobotDescriptionError(f"writes {path!r:.200}")
        if isinstance(path, (str, bytes, os.PathLike)) and not _is_library(path):
            _check(os.fsdecode(path), folders)
    elif event.partition(".")[0] in _FORBIDDEN and event not in _HARMLESS:
        raise RobotDescriptionError(f"calls {event}, which no description needs")


def _is_library(path: Any) -> bool:
    """Whether Python opens a module of its own: one that is imported late, or shown in a traceback."""
    name = os.fsdecode(path)
    return name.endswith((".py", ".pyc")) and any(name.startswith(os.path.join(p, "")) for p in sys.path if p)


if __name__ == "__main__":
    file, *rest = sys.argv[1:]
    try:
        text = main(Path(file), dict(argument.partition(":=")[::2] for argument in rest))
    except Exception as error:
        # xacro's own classes, Python's for expressions, expat's: the line is what a user needs of any of them.
        sys.exit(" ".join(f"{error or type(error).__name__}".split()))
    sys.stdout.buffer.write(text.encode("utf-8"))
