# SPDX-License-Identifier: Apache-2.0
"""Another robot is described while the compiler fails or the cache is damaged: the stream goes on."""

import os
import resource
import shutil
import signal

import numpy as np
import pytest
from node_client import Client
from played import played, swings, wrong_answers
from urdf_arms import fresh_mass, urdf_arm

import eom_dynamics as eom
from eom_dynamics.robot import robot_from_urdf

NAMES = ("shoulder", "elbow")
# Setpoints a second: few enough for a busy machine, with delays that are not due to the fault.
RATE, COUNT, FAULT = 250, 2000, 500

# Backends other than the compiled one add in another order.
ROUNDING = 1e-12

# Time for the compiler, s, instead of five minutes; largest file on a full disk, bytes.
TIMEOUT, FULL = 3.0, 8192

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]


class Machine:
    """Compiler and cache of a node, and the faults that they can have."""

    def __init__(self, folder):
        self.folder, self.cache, self.compiler = folder, folder / "cache", folder / "cc"
        self.compiler.write_text(f'#!/bin/sh\n. {folder}/fault\nexec {shutil.which("cc")} "$@"\n')
        self.compiler.chmod(0o700)
        (folder / "fault").write_text("")
        (folder / "sitecustomize.py").write_text(
            f"from eom_dynamics.codegen import compiler\ncompiler._TIMEOUT_S = {TIMEOUT}\n"
        )
        self.node = self.entries = None

    def missing(self):
        self.compiler.unlink()

    def fails(self):
        (self.folder / "fault").write_text("echo 'kernel.c:1: error: on purpose' >&2; exit 1\n")

    def hangs(self):
        (self.folder / "fault").write_text("exec sleep 1000\n")

    def full(self):
        resource.prlimit(self.node.process.pid, resource.RLIMIT_FSIZE, (FULL, resource.RLIM_INFINITY))

    def damaged(self):
        for path in self.entries:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

    def truncated(self):
        for path in self.entries:
            path.with_name("half").write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            path.with_name("half").chmod(0o700)
            path.with_name("half").rename(path)

    def swapped(self):
        """Each entry of one robot under the name of one of the other."""
        others = sorted(set(self.cache.glob("*.so")) - set(self.entries))
        for mine, other in zip(sorted(self.entries), others, strict=False):
            mine.rename(self.cache / "aside")
            other.rename(mine)
            (self.cache / "aside").rename(other)

    def removed(self):
        shutil.rmtree(self.cache)

    def read_only(self):
        self.cache.chmod(0o500)


# Name of the fault; how it is made; whether the new robot was compiled before; whether it is then accepted or refused.
FAULTS = {
    "compiler missing": (Machine.missing, False, False),
    "compiler failing": (Machine.fails, False, False),
    "compiler hanging": (Machine.hangs, False, False),
    f"disk full: no file over {FULL // 1024} KiB": (Machine.full, False, False),
    "cache read-only, new robot": (Machine.read_only, False, False),
    "cache read-only, known robot": (Machine.read_only, True, True),
    "cache entries with a flipped bit": (Machine.damaged, True, True),
    "cache entries truncated": (Machine.truncated, True, True),
    "cache entries of two robots exchanged": (Machine.swapped, True, True),
    "cache removed": (Machine.removed, True, True),
}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """For the nodes that the test starts; the reference is compiled before."""
    machine = Machine(tmp_path)
    machine.urdfs = [urdf_arm(f"arm_{k}", NAMES, fresh_mass()) for k in range(2)]
    machine.arms = [eom.ElasticArm(robot_from_urdf(urdf)) for urdf in machine.urdfs]
    for arm in machine.arms:
        arm.feedforward(*np.zeros((5, 2, len(NAMES))))
    monkeypatch.setenv("CC", str(machine.compiler))
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(machine.cache))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return machine


def described(client, describe, urdf, name):
    describe(urdf)
    return client.wait_for_diagnostics(lambda *s: (s[2]["robot"], s[2]["state"]) == (name, "active"), name)[2]


def start_on(start, topic, **options):
    """A node that takes its robot from a topic; permissions of files hold for it even if root starts it."""
    prefix = ()
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv, which takes the permission away, is not installed")
        without = "-dac_override,-dac_read_search"
        prefix = ("setpriv", f"--bounding-set={without}", f"--inh-caps={without}")
    return start("-r", f"robot_description:={topic}", client=Client, prefix=prefix, **options)


@pytest.mark.parametrize("name", FAULTS)
def test_another_robot(start, describe, machine, tmp_path, fault_row, name):
    inject, known, taken = FAULTS[name]
    urdfs, arms = machine.urdfs, machine.arms
    client = start_on(start, describe.topic)
    machine.node = client.process
    described(client, describe, urdfs[0], "arm_0")
    before = set(machine.cache.glob("*.so"))
    if known:
        described(client, describe, urdfs[1], "arm_1")
        machine.entries = set(machine.cache.glob("*.so")) - before
        assert machine.entries
        described(client, describe, urdfs[0], "arm_0")
    injected = []

    def fault(sent):
        if sent >= FAULT and not injected:
            inject(machine)
            describe(urdfs[1])
            injected.append(sent)

    arrays = swings(len(NAMES), COUNT, RATE)
    counts, record = played(client, tmp_path, arrays, RATE, fault)
    robot = f"arm_{taken:d}"
    client.wait_for_diagnostics(lambda *s: s[2]["robot"] == robot and (taken or "refused robot" in s[2]), "the robot")
    resource.prlimit(client.process.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    # A new stream, which is all of one robot.
    again = swings(len(NAMES), RATE, RATE)
    after, answers = played(client, tmp_path, again, RATE, lambda sent: None)
    wrong = wrong_answers(arms, arrays, record, ROUNDING) + wrong_answers([arms[taken]], again, answers, ROUNDING)
    both = {key: counts[key] + after[key] for key in ("sent", "lost")}
    values = client.next_diagnostics()[2]
    late = np.nanmax(record["round_trip"])
    fault_row(name, both, wrong, values, f"another robot is described; longest round trip {late * 1e3:.0f} ms")
    assert (wrong, both["lost"], counts["out_of_order"]) == (0, 0, 0)
    assert (values["state"], values["backend"]) == ("active", "native")
    assert "Traceback" not in client.process.log


def test_a_compiler_that_is_killed(start, describe, machine, fault_row, tmp_path):
    """Killed together with its node; the next node compiles again."""
    urdf = machine.urdfs[0]
    (tmp_path / "fault").write_text(f"echo $$ > {tmp_path}/pid; exec sleep 1000\n")
    client = start_on(start, describe.topic)
    describe(urdf)
    client.wait((tmp_path / "pid").exists, "the compiler")
    client.process.process.send_signal(signal.SIGKILL)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    (tmp_path / "fault").write_text("")
    second = start_on(start, describe.topic)
    values = described(second, describe, urdf, "arm_0")
    arrays = swings(len(NAMES), RATE, RATE)
    counts, record = played(second, tmp_path, arrays, RATE, lambda sent: None)
    wrong = wrong_answers(machine.arms[:1], arrays, record)
    fault_row("node and compiler killed while compiling", counts, wrong, values, "another node compiles the robot")
    assert (values["backend"], wrong, counts["lost"]) == ("native", 0, 0)
