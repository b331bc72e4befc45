# SPDX-License-Identifier: Apache-2.0
"""The check of the drivers' page, on a small repository, and that the page names the commits that are checked."""

import runpy
import subprocess

from paths import DOCS, ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "drivers.py"))


def test_claims_hold_or_fail(tmp_path, capsys):
    clone = tmp_path / "owner+name"
    clone.mkdir()
    (clone / "file").write_text("gains: 3\n")
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    for command in (["init", "-q"], ["add", "file"], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", clone, *command], check=True)
    source = ("owner/name", "HEAD")
    cases = ((r"gains: \d", True, 0), (r"gains: \d", False, 1), ("losses", False, 0), ("losses", True, 1))
    for pattern, there, failed in cases:
        SCRIPT["main"].__globals__["CLAIMS"] = ((source, "file", pattern, there, "a claim"),)
        assert SCRIPT["main"]([str(tmp_path)]) == failed
    SCRIPT["main"].__globals__["CLAIMS"] = ((source, "absent", "x", False, "a claim"),)
    assert SCRIPT["main"]([str(tmp_path)]) == 1
    assert "FAILS  owner/name@HEAD absent: a claim" in capsys.readouterr().out


def test_the_page_names_the_commits():
    page = (DOCS / "drivers.md").read_text(encoding="utf-8")
    for name in ("FRANKA", "LBR", "UR", "KORTEX", "ODRIVE"):
        repository, commit = SCRIPT[name]
        assert repository in page and f"`{commit[:8]}`" in page
