# SPDX-License-Identifier: Apache-2.0
"""Set up .venv: ROS 2 Jazzy, requirements of the demo, and this project, imported from its source folder.

    bootstrap.py [EXTRA ...]    also install these extras of setup.cfg, in the versions of requirements/lock.txt

`make` runs it first. It needs Python and a C and a C++ compiler, and runs only the steps with changed inputs.
"""

import sys

if not (3, 10) <= sys.version_info < (3, 15):
    sys.exit(
        "eom_dynamics needs Python 3.10 to 3.14, and {} is {}.{}. Choose another one: make PYTHON=python3.12".format(
            sys.executable, *sys.version_info
        )
    )

import configparser
import contextlib
import difflib
import fcntl
import os
from pathlib import Path

from machine import check_machine
from steps import Setup, Step, StepError

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
LOCK = REQUIREMENTS / "lock.txt"
VENV = ROOT / ".venv"
BUILD = VENV / "build"
PYTHON = VENV / "bin/python"
# Without the patch release, so that a new patch release does not invalidate .venv.
PYTHON_LIBRARY = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE_PACKAGES = VENV / "lib" / PYTHON_LIBRARY / "site-packages"
INTERFACES = VENV / "lib" / "interfaces"  # the generated part of the package eom_dynamics: msg, srv
SLIM = ROOT / "scripts/slim.py"
SIZES = {"dev": ", 1.1 GB more, two to five minutes"}
PIP_INSTALL = (PYTHON, "-m", "pip", "install", "--no-compile", "--no-build-isolation", "-c", LOCK)

# As in eom_dynamics/__init__.py, which is imported later: Python starts twice, at first to find the libraries of ROS.
UNCAUGHT_INTERRUPT = (
    "import _signal, sys; "
    "any(x == '-m' and y.startswith('eom_dynamics.ros.') for x, y in zip(sys.orig_argv, sys.orig_argv[1:])) "
    "and _signal.getsignal(2) is _signal.default_int_handler and _signal.signal(2, _signal.SIG_DFL)"
)

# With .venv active, the Python that .venv was made from.
BASE_PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def main():
    """Bring .venv up to date; create it again if it is damaged or belongs to another Python."""
    check_machine()
    setup = Setup(steps(sys.argv[1:]), VENV / "setup")
    with one_at_a_time():
        if VENV.exists() and not setup.is_fresh(setup.steps[0]):
            setup.remove(VENV, f"it is incomplete, or was not made here by {PYTHON_LIBRARY}")
        if not setup.run(command_environment()):
            print(".venv is up to date")


def steps(extras):
    """Return all steps; the first creates .venv."""
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")

    known = options["options.extras_require"]
    if unknown := [name for name in extras if name not in known]:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise StepError(f"EXTRAS: there is no extra {unknown[0]!r}; {remedy}")

    def packages(*names):
        lists = [options["options"]["install_requires"]]
        lists += [known[name] for name in names]
        return sorted({line for text in lists for line in text.splitlines() if line})

    # .venv is also an ament prefix. It imports sources from here, and interfaces from the CMake build.
    paths = [
        "import os, sys; os.environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)",
        UNCAUGHT_INTERRUPT,
        str(ROOT),
        str(INTERFACES),
    ]
    write_paths = "import sys; open(sys.argv[1], 'w').write('\\n'.join(sys.argv[2:]))"
    create = [
        (BASE_PYTHON, "-m", "venv", VENV),
        (PYTHON, "-c", write_paths, SITE_PACKAGES / "eom_dynamics.pth", *paths),
        (*PIP_INSTALL, "pip", "setuptools"),
    ]
    ros, build = REQUIREMENTS / "ros.txt", REQUIREMENTS / "build.txt"
    demo = packages("demo")
    cmake = VENV / "bin/cmake"
    configure = (
        *(cmake, "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"),
        *(f"-DCMAKE_INSTALL_PREFIX={VENV}", f"-DPYTHON_INSTALL_DIR={INTERFACES.relative_to(VENV)}"),
        *(f"-DPython3_EXECUTABLE={PYTHON}", "-DEOM_DYNAMICS_IN_PLACE=ON"),
    )
    built = [ROOT / name for name in ("CMakeLists.txt", "package.xml", "scripts/entry_point.in")]
    built += [path for kind in ("msg", "srv") for path in sorted(ROOT.glob(f"{kind}/*.{kind}"))]
    build_all = (cmake, "--build", BUILD, "--target", "install")
    install = [
        # Remove earlier builds: CMake does not notice deleted messages, and their type support would be missing.
        (cmake, "-E", "rm", "-rf", BUILD, INTERFACES, VENV / "lib/eom_dynamics", VENV / "share/eom_dynamics"),
        configure,
        build_all,
    ]
    loop = [*sorted(ROOT.glob("eom_dynamics/control/eom/*")), ROOT / "scripts/loop_sources.py"]
    filled_by = ("control/headers.py", "control/settings.py", "codegen/cache.py", "filling.py", "vectors.py")
    loop += [ROOT / "eom_dynamics" / name for name in filled_by]

    version = sys.version.split()[0]
    result = [
        Step("environment", f"Creating .venv with Python {version}", create, [str(ROOT), PYTHON_LIBRARY, *paths]),
        Step(
            "packages",
            "Installing ROS 2 Jazzy and the libraries of the demo, 450 MB, a minute or two",
            [(*PIP_INSTALL, "-r", ros, "-r", build, *demo), (PYTHON, SLIM, VENV)],
            [LOCK, ros, build, SLIM, *demo],
        ),
        Step(
            "interfaces", "Building the interfaces and the control loop", install, [str(configure), *built, processor()]
        ),
    ]
    if extras:
        wanted = packages(*extras)
        title = f"Installing the extras {', '.join(extras)}{SIZES.get(extras[0], '')}"
        result.append(Step("-".join(extras), title, [(*PIP_INSTALL, *wanted), (PYTHON, SLIM, VENV)], wanted))
    # Last, because an edit of a header does not change the other installations.
    result.append(
        Step("-".join(["loop", *extras]), "Building the changed parts of the control loop", [build_all], loop)
    )
    return result


def processor():
    """Return the properties of this processor that affect compiled code."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags"))))


def command_environment():
    """Return the environment of all commands: the caller's, with .venv first."""
    return {
        **os.environ,
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "AMENT_PREFIX_PATH": str(VENV),
        "CMAKE_PREFIX_PATH": str(VENV),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@contextlib.contextmanager
def one_at_a_time():
    """Wait until no other process sets up this folder. The folder itself is the lock file: no step deletes it."""
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
        sys.exit("\ninterrupted: the next call continues from here")
