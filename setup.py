# SPDX-License-Identifier: Apache-2.0
"""The library and the command line as a wheel; setup.cfg describes it. The wheel has the control loop, compiled."""

import configparser
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent

# As in CMakeLists.txt: for any processor, and by folders for those of a level of x86-64 and above.
FLAGS = (
    *("-std=c++17", "-ffp-contract=off", "-fvisibility=hidden", "-Wno-psabi", "-fPIC", "-shared", "-DNDEBUG", "-Wl,-s"),
)
BUILDS = {
    "": ("-O3",),
    "glibc-hwcaps/x86-64-v3": ("-march=x86-64-v3", "-O3"),
    "glibc-hwcaps/x86-64-v4": ("-march=x86-64-v4", "-O2", "-mtune=haswell"),
}
LIBRARY = "libeom_loop.so"


def description():
    """README.md for the page of a package index, where links and pictures must be absolute: those of the release."""
    metadata = configparser.ConfigParser(interpolation=None)
    metadata.read(HERE / "setup.cfg", encoding="utf-8")
    sources = metadata["metadata"].get("url", "")
    pictures = sources.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"
    text = (HERE / "README.md").read_text(encoding="utf-8")
    if not sources:
        return text
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\1{pictures}", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!\w+:|#)", rf"\1{sources}/blob/main/", text)


class BuildWithLoop(build_py):
    """Modules and data, the headers of the loop, and the loop where there is a C++ compiler, $CXX."""

    def run(self):
        """Compile into the folder of the build; of an editable installation, into that of the sources."""
        super().run()
        package = Path(HERE if self.editable_mode else self.build_lib, "eom_dynamics").absolute()
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, HERE / "scripts/loop_sources.py", folder], check=True)
            if not self.editable_mode:
                shutil.copytree(Path(folder, "include"), package / "include", dirs_exist_ok=True)

            def build(kind):
                library = package / kind / LIBRARY
                library.parent.mkdir(parents=True, exist_ok=True)
                options = [*FLAGS, *BUILDS[kind], *shlex.split(os.environ.get("CXXFLAGS", ""))]
                compiler = shlex.split(os.environ.get("CXX", "c++"))
                subprocess.run([*compiler, *options, "-Iinclude", "loop.cpp", "-o", library], cwd=folder, check=True)

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                builds = [pool.submit(build, kind) for kind in BUILDS if not kind or platform.machine() == "x86_64"]
            error, *of_levels = (x.exception() for x in builds)
            if error:
                self.warn(f"the control loop is not built, which takes a C++ compiler: install g++ ({error})")
            elif any(of_levels):
                self.warn(f"the control loop is built for any processor only: install g++ 11 or later ({of_levels})")


class PlatformWheel(bdist_wheel):
    """For any version of Python on one kind of machine."""

    def get_tag(self):
        """Tags of the name of the wheel."""
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    """It has compiled code."""

    def has_ext_modules(self):
        """Whether it belongs where Python keeps what is of one kind of machine."""
        return True


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    distclass=WithLibrary,
    cmdclass={"build_py": BuildWithLoop, "bdist_wheel": PlatformWheel},
)
