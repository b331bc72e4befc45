# SPDX-License-Identifier: Apache-2.0
"""Set up .venv: ROS 2 Jazzy, the Python packages and this project, built and installed.

Needs nothing but Python and a C/C++ compiler. `make` calls it before everything else: when nothing has
changed since the last time, it is done in a moment. Sources are linked, not copied, so an edit of
eom_dynamics/*.py, config/ or launch/ is live at once.
"""

import sys

if not (3, 10) <= sys.version_info < (3, 15):
    sys.exit(
        "eom_dynamics needs Python 3.10 to 3.14, and {} is {}.{}. Name another one: make PYTHON=python3.12".format(
            sys.executable, *sys.version_info
        )
    )

import argparse
import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from health import damaged_package_file, dangling_link
from machine import check_machine
from steps import Setup, Step, StepError

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
LOCK = REQUIREMENTS / "lock.txt"
VENV = ROOT / ".venv"
# Another patch release of Python may come and go without .venv being made anew.
SERIES = f"python{sys.version_info.major}.{sys.version_info.minor}"
BUILD = VENV / "build"
PYTHON = VENV / "bin/python"
SITE_PACKAGES = VENV / "lib" / SERIES / "site-packages"
PIP_INSTALL = (PYTHON, "-m", "pip", "install", "--no-compile", "--no-build-isolation")

# Called with .venv active, this is the Python that .venv was made from.
BASE_PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def main():
    """Bring .venv up to date; make it anew where it was left half made or is damaged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", action="store_true", help="also install what the benchmarks compare with")
    peers = [install_step("bench", "the peers of the benchmarks")] if parser.parse_args().bench else []
    check_machine()
    packages, project = package_steps(), project_steps()
    setup = Setup([*packages, *project, *peers], VENV / "setup")
    with only_one_at_a_time():
        reason = reason_to_start_anew(setup, packages)
        if reason:
            print(f"Removing .venv, since {reason}", flush=True)
            # The stamps first: what is left of an interrupted removal must not count as whole.
            shutil.rmtree(setup.folder, ignore_errors=True)
            shutil.rmtree(VENV)
        elif setup.is_fresh(project[-1]) and dangling_link(BUILD / "symlink_install_manifest.txt"):
            setup.forget(project[0])
        if not setup.run(environment()):
            print(".venv is up to date")


def reason_to_start_anew(setup, packages):
    """Return why the .venv that is there cannot be brought up to date, or None."""
    if not VENV.exists():
        return None
    if not setup.is_fresh(packages[0]) or not all(map(setup.was_done, packages)):
        return f"it is not finished, or not made here by {SERIES}"
    damage = damaged_package_file(VENV, SITE_PACKAGES)
    return f"{damage} is missing or was changed" if damage else None


def package_steps():
    """Return the steps for everything in .venv that the project needs and is not of it."""
    create = [
        (BASE_PYTHON, "-m", "venv", VENV),
        ("cp", ROOT / "scripts/ament_prefix.pth", SITE_PACKAGES),
        (*PIP_INSTALL, "-c", LOCK, "pip", "setuptools"),
    ]
    return [
        Step("environment", f"Creating .venv with Python {sys.version.split()[0]}", create, [str(VENV), SERIES]),
        install_step("ros", "ROS 2 Jazzy"),
        install_step("build", "the build tools"),
        install_step("runtime", "the numerical and plotting libraries"),
        install_step("test", "the test tools"),
    ]


def install_step(name, what):
    """Return the step that installs what a file of requirements names."""
    file = REQUIREMENTS / f"{name}.txt"
    return Step(name, f"Installing {what}", [(*PIP_INSTALL, "-r", file)], [LOCK, file])


def project_steps():
    """Return the steps that build this project and install it into .venv."""
    cmake = VENV / "bin/cmake"
    configure = (
        *(cmake, "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"),
        *(f"-DCMAKE_INSTALL_PREFIX={VENV}", "-DAMENT_CMAKE_SYMLINK_INSTALL=ON", f"-DPython3_EXECUTABLE={PYTHON}"),
    )
    built = [ROOT / name for name in ("CMakeLists.txt", "package.xml", "scripts/entry_point.in")]
    built += [path for kind in ("msg", "srv", "action") for path in sorted(ROOT.glob(f"{kind}/*.{kind}"))]

    # A file that is gone from the sources must not live on as a link to nowhere.
    clean = (cmake, "-E", "rm", "-rf", SITE_PACKAGES / "eom_dynamics", VENV / "share/eom_dynamics")
    linked_names = sorted(
        str(path)
        for folder in ("eom_dynamics", "config", "launch")
        for path in ROOT.glob(f"{folder}/**/*")
        if path.is_file() and path.suffix != ".pyc"
    )
    return [
        Step("interfaces", "Building the interfaces", [configure, (cmake, "--build", BUILD)], [str(configure), *built]),
        Step(
            "project",
            "Installing eom_dynamics",
            [clean, (cmake, "--build", BUILD, "--target", "install")],
            linked_names,
        ),
    ]


def environment():
    """Return the environment of all commands: that of the caller, with .venv first."""
    return {
        **os.environ,
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "AMENT_PREFIX_PATH": str(VENV),
        "CMAKE_PREFIX_PATH": str(VENV),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@contextlib.contextmanager
def only_one_at_a_time():
    """Wait for another set-up of this folder to end. The lock is the folder itself, which no step deletes."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Waiting for another set-up of .venv to end …", flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(folder)


if __name__ == "__main__":
    try:
        main()
    except StepError as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: the next call starts where this one stopped")
