# SPDX-License-Identifier: Apache-2.0
"""Several robots on one machine, in a process each: answers, names, diagnostics, caches, costs."""

import os
from pathlib import Path

import numpy as np
import pytest
from node_client import Client
from urdf_arms import fresh_mass, urdf_arm

JOINTS, RATE = 7, 200

# Share of the run for these streams, and least length, s.
SHARE, LEAST = 0.05, 5.0

CASES = {"one robot": 1, "four robots in four processes": 4, "eight robots in eight processes": 8}


def processor_time(pid):
    """Processor time of a process, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("title", "count"), CASES.items(), ids=CASES)
def test_robots(start, script, row, tmp_path, monkeypatch, seconds, title, count):
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path / "cache"))  # shared by the nodes, and empty
    urdfs = {}
    for k in range(count):
        names = [f"arm_{k}_joint_{j}" for j in range(JOINTS)]
        urdfs[k] = tmp_path / f"arm_{k}.urdf"
        urdfs[k].write_text(urdf_arm(f"arm_{k}", names, fresh_mass()))
    clients = [start("-p", f"robot_file:={path}", "-p", "limits:=ignore", client=Client) for path in urdfs.values()]
    for client in clients:
        client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the robots")
    pids = {client.process.process.pid for client in clients}
    pairs = [f"{client.process.namespace}={urdfs[k]}" for k, client in enumerate(clients)]
    length = max(LEAST, SHARE * seconds)
    command = ("result.npz", "--rate", RATE, "--seconds", length, "--robots", *pairs)
    connected = tmp_path / "connected"
    streamer = script("several_streams", *command, stdout=connected.open("w"))
    while streamer.poll() is None and not connected.read_text():
        clients[0].spin(0.05)
    before = sum(map(processor_time, pids))
    while streamer.poll() is None:
        clients[0].spin(0.1)
    spent = sum(map(processor_time, pids)) - before
    memory = sum(map(resident, pids))
    assert streamer.returncode == 0
    # Each reports its own robot, under its own name.
    values = [client.next_diagnostics()[2] for client in clients]
    names = {client.diagnostics[-1].status[0].name for client in clients}
    result = {name: value[()] for name, value in np.load(tmp_path / "result.npz").items()}
    trips = result["round_trip"][np.isfinite(result["round_trip"])]
    row(
        "robots",
        robots=title,
        rate=RATE,
        processor=spent / result["sent"],
        memory=memory / count,
        round_trip=list(np.percentile(trips, (50, 99))),
        **{name: int(result[name]) for name in ("sent", "lost", "wrong")},
    )
    assert (result["lost"], result["wrong"]) == (0, 0)
    assert [each["robot"] for each in values] == [f"arm_{k}" for k in range(count)]
    assert len(names) == count
    assert len({each["received"] for each in values}) <= 2 and {each["refused"] for each in values} == {"0"}
    # Dynamics and motors of each robot; caller and stream once, or once for each process that has found none.
    entries = list((tmp_path / "cache").glob("*.so"))
    assert len({path.name.partition("-")[0] for path in entries}) == 2 * count + 2
