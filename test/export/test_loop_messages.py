# SPDX-License-Identifier: Apache-2.0
"""Random messages, of which some have no sense, to the loop of a controller from another thread, under sanitizers."""

from pathlib import Path

import pytest
from compilation import supports
from exported import robot, succeed

from eom_dynamics.export import generic_files, loop_library

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

MESSAGES = 125_000  # for each robot, and twice


@pytest.mark.parametrize("flags", ["-fsanitize=address,undefined -fno-sanitize-recover=undefined", "-fsanitize=thread"])
def test_random_messages_from_another_thread(flags: str, tmp_path: Path) -> None:
    if not supports(tmp_path, *flags.split()):
        pytest.skip(f"the compiler has no {flags}")
    for name, text in generic_files().items():
        if name.endswith((".hpp", ".h", "loop.cpp")) and "feedforward_controller" not in name:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    sizes = [f"-DEOM_{name}={most}" for name, most in (("JOINTS", 8), ("MOTORS", 8), ("TOOLS", 2))]
    sources = [Path(__file__).with_name("loop_messages.cpp"), "src/loop.cpp", "-ldl", "-pthread"]
    common = ["-std=c++17", "-O1", "-g", "-DEOM_EIGEN=0", "-Iinclude", "-Isrc", *sizes]
    succeed(["c++", *flags.split(), *common, *sources, "-o", "play"], tmp_path)
    for name in ("sea_planar_2r", "vsa_planar_2r", "drives", "shared"):
        library = loop_library(robot(name), moving_base=True).path
        for seed in ("1", "2"):
            assert f"{MESSAGES} cycles;" in succeed([tmp_path / "play", library, str(MESSAGES), seed], tmp_path)
