# SPDX-License-Identifier: Apache-2.0
"""Whether what was installed into .venv is still all there."""

import csv
import os


def damaged_package_file(venv, site_packages):
    """Return the first file that is missing, or not of the size that its wheel brought; None if all is well."""
    for name in ("pyvenv.cfg", "bin/python"):
        if not (venv / name).exists():
            return venv / name
    for record in site_packages.glob("*.dist-info/RECORD"):
        with record.open(newline="") as lines:
            for name, _, size in csv.reader(lines):
                if name.endswith(".pyc"):  # Python rewrites those that a wheel brought
                    continue
                path = os.path.join(site_packages, name)
                try:
                    actual = os.stat(path).st_size
                except FileNotFoundError:
                    return path
                if size and int(size) != actual:
                    return path
    return None


def dangling_link(manifest):
    """Return the first installed link of the manifest that leads nowhere, or None."""
    try:
        links = manifest.read_text().splitlines()
    except FileNotFoundError:
        return manifest
    return next((link for link in links if not os.path.exists(link)), None)
