# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib.util
import platform
import sysconfig

import machine
import pytest


@pytest.mark.parametrize(
    ("module", "function", "answer", "told"),
    [
        (platform, "machine", "aarch64", "Linux aarch64"),
        (platform, "libc_ver", ("", ""), "not glibc"),
        (platform, "libc_ver", ("glibc", "2.17"), "need glibc 2.28"),
        (platform, "python_implementation", "PyPy", "PyPy"),
        (importlib.util, "find_spec", None, "-venv"),
        (sysconfig, "get_path", "/nowhere", "/nowhere/Python.h"),
        (machine.shutil, "which", None, "no C compiler"),
    ],
)
def test_what_is_missing_is_told_in_one_line(
    monkeypatch, module: object, function: str, answer: object, told: str
) -> None:
    monkeypatch.setattr(module, function, lambda *_, **__: answer)
    with pytest.raises(SystemExit, match=told) as told_and_left:
        machine.check_machine()
    assert "\n" not in str(told_and_left.value)


def test_compiler_of_the_environment_is_looked_for(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    assert "no-such-compiler" in machine.compiler_problem()


def test_this_machine_will_do() -> None:
    machine.check_machine()
