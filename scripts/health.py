# SPDX-License-Identifier: Apache-2.0
"""Completeness of an installed virtual environment."""

import csv
import os


def missing_file(venv, site_packages, manifest):
    """Return the first file that is missing or not of the size that its wheel brought; None if all are there.

    Args:
        venv: the virtual environment.
        site_packages: its folder of packages, whose RECORD files list what pip installed.
        manifest: CMake's list of the files that it installed; it may be absent.
    """
    expected = [(venv / "pyvenv.cfg", ""), (venv / "bin/python", "")]
    if manifest.exists():
        expected += [(path, "") for path in manifest.read_text().splitlines()]
    for record in site_packages.glob("*.dist-info/RECORD"):
        with record.open(newline="") as lines:
            for name, _, size in csv.reader(lines):
                if not name.endswith(".pyc"):  # Python rewrites the byte code that a wheel brought
                    expected.append((os.path.join(site_packages, name), size))
    for path, size in expected:
        try:
            actual = os.stat(path).st_size
        except FileNotFoundError:
            return path
        if size and int(size) != actual:
            return path
    return None
