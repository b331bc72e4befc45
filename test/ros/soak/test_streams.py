# SPDX-License-Identifier: Apache-2.0
"""A long stream of setpoints, alone and with four planners: losses, latency against an echo node, memory, numbers."""

import json
import time

import numpy as np
import processes
import pytest
from node_client import Client
from paths import CONFIG, ROOT

IIWA = ("--params-file", CONFIG / "iiwa.yaml")

# Growth of the node after it has settled, bytes, and the time after which it has, s: shorter runs do not tell.
GROWTH, SETTLED = 1e6, 60.0


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("planners", [0, 4])
@pytest.mark.parametrize("rate", [1000, 2000])
def test_a_long_stream(start, script, row, tmp_path, monkeypatch, seconds, rate, planners):
    client = start(*IIWA, client=Client)
    space = client.process.namespace
    script("echo", namespace=f"{space}/echo", folder=ROOT / "bench")
    if planners:
        monkeypatch.delenv("FASTRTPS_DEFAULT_PROFILES_FILE")  # it has one of its own
        start.planning(*IIWA, {"running.NICENESS": 10}, name="planning", beside=client.process)
    callers = [
        script("batch_planner", f"planner_{k}.json", namespace=space, stdout=(tmp_path / f"ready_{k}").open("w"))
        for k in range(planners)
    ]
    for k in range(planners):
        client.wait(lambda k=k: (tmp_path / f"ready_{k}").stat().st_size, "the planners")
    arguments = ("result.npz", "--rate", rate, "--seconds", seconds, "--node", space, "--echo", f"{space}/echo")
    arguments += ("--process", client.process.process.pid)
    with (tmp_path / "progress").open("w+") as progress:
        streamer = script("streamer", *arguments, stdout=progress)
        times, resident = [], []
        while streamer.poll() is None:
            client.spin(0.5)
            times.append(time.monotonic())
            resident.append(client.process.resident_bytes)
    assert streamer.returncode == 0, client.process.log
    processes.end(*callers)
    asked = [json.loads((tmp_path / f"planner_{k}.json").read_text()) for k in range(planners)]

    result = {name: value[()] for name, value in np.load(tmp_path / "result.npz").items()}
    ours, echo = (result[name][np.isfinite(result[name])] * 1e6 for name in ("round_trip", "echo"))
    since = np.array(times) - times[0]
    settled = np.array(resident)[since >= SETTLED]
    growth = int(settled.max() - settled[0]) if len(settled) else None
    values = client.next_diagnostics()[2]
    percents = (50, 99, 99.9)
    row(
        "stream",
        stream=f"{rate} Hz, {f'{planners} planners' if planners else 'alone'}",
        seconds=seconds,
        sent=int(result["sent"]),
        lost=int(result["sent"] - result["received"]),
        numbers=int(result["numbers"]),
        different=int(result["different"]),
        held_up=float(result["held_up"]),
        node=[*np.percentile(ours, percents), ours.max()],
        echo=[*np.percentile(echo, percents), echo.max()],
        growth=growth,
        resident=resident[-1],
        batches=sum(sum(each["counts"].values()) for each in asked),
    )
    assert [each["problem"] for each in asked] == [""] * planners
    assert all(min(each["counts"].values()) > 0 for each in asked)
    assert result["sent"] == result["received"]
    assert result["out_of_order"] == result["repeated"] == result["different"] == 0
    assert values["refused"] == values["dropped as too old"] == "0"
    assert values["state"] == "active"
    assert growth is None or growth < GROWTH
