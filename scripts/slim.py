# SPDX-License-Identifier: Apache-2.0
"""Make an environment smaller: tests and help of installed packages, programs without a use here, equal files twice.

slim.py FOLDER    removes files that no import and no build of .venv needs, and links equal files.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

LEAST = 32_768
"""Size of files that are compared, bytes."""

TESTED = ("numpy", "scipy", "matplotlib", "mpl_toolkits")
"""Packages whose folders ``tests`` are removed, except imports of ``numpy.testing`` with Python 3.10."""

UNUSED = (
    *("cmake/data/bin/ctest", "cmake/data/bin/cpack", "cmake/data/share/cmake-*/Help"),
    *("../../../bin/ctest", "../../../bin/cpack"),  # they would hide the programs of the system
    *("plotly/labextension", "plotly/package_data/widgetbundle.js", "fontTools/*/*.so"),
    *("PIL/_avif*", "pillow.libs/libavif*"),
    *("cmeel.prefix/include", "cmeel.prefix/share/example-robot-data/robots/*/meshes"),
)
"""Patterns below site-packages. fontTools also has each of its compiled modules in Python; pictures are PNG. Tests do
not use meshes."""


def main():
    """Clean the environment of the command line."""
    root = Path(sys.argv[1])
    packages = next(root.glob("lib/python3.*/site-packages"))
    found = [path for name in TESTED for path in (packages / name).rglob("tests") if path.is_dir()]
    found = [path for path in found if not (path / "_natype.py").exists()]
    found += [path for pattern in UNUSED for path in packages.glob(pattern)]
    for path in found:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    same = {}
    for path in root.rglob("*"):
        # Programs may differ by their own place.
        if path.is_symlink() or not path.is_file() or path.stat().st_size < LEAST or path.is_relative_to(root / "bin"):
            continue
        content = path.stat().st_size, hashlib.sha256(path.read_bytes()).digest()
        first = same.setdefault(content, path)
        if first is not path and not first.samefile(path):
            copy = path.with_name(f".{path.name}.link")
            os.link(first, copy)
            copy.replace(path)


if __name__ == "__main__":
    main()
