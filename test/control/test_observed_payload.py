# SPDX-License-Identifier: Apache-2.0
"""Payloads from external efforts: mass, center of mass, their deviations, and what is not told."""

from dataclasses import replace

import numpy as np
import pytest
from mujoco_arms import MujocoArm

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.control.contact_thresholds import ContactThresholds
from eom_dynamics.control.observed_payload import payload_of_efforts
from eom_dynamics.robot.model import ModelUncertainty
from eom_dynamics.trajectory import Cosine

PANDA = eom.ElasticArm(eom.load_robot("panda"))
PAYLOAD = eom.Payload(2.3, [0.02, -0.01, 0.09])


def carried(states: tuple[Array, ...], deviation: float = 0.0) -> dict[str, Array]:
    tau = PANDA.dynamics.effort(*states[:3], payload=PAYLOAD)
    tau = tau + deviation * np.random.default_rng(0).standard_normal(tau.shape)
    return {"q": states[0], "qd": states[1], "tau": tau}


@pytest.mark.parametrize("moving", [False, True])
def test_a_payload_from_efforts(moving: bool) -> None:
    """At rest in four poses, or along a motion: within four deviations, and 2 % under noise of 0.5 N m."""
    if moving:
        t = 1e-3 * np.arange(4000)
        states = Cosine(np.full(7, 0.5), 1.0 + 0.3 * np.arange(7), np.arange(7.0)).derivatives(t)
    else:
        poses = np.random.default_rng(1).uniform(-1.2, 1.2, (4, 7))
        t = (1e-3 * np.arange(600) + np.arange(4)[:, None]).ravel()
        q = np.repeat(poses, 600, axis=0)
        states = (q, np.zeros_like(q), np.zeros_like(q))
    observer = eom.ExternalEffortObserver(PANDA, 30.0)
    exact = eom.estimate_payload(observer, t, **carried(states))
    # The filter settles to 1 %; in motion, blocks of 20 ms, and the inertia of a body that is no point.
    assert exact.payload.mass == pytest.approx(PAYLOAD.mass, rel=5e-3 if moving else 1e-3)
    found = eom.estimate_payload(observer, t, **carried(states, 0.5))
    assert abs(found.payload.mass - PAYLOAD.mass) < 4 * found.mass_deviation < 0.08
    errors = np.abs(np.asarray(found.payload.center_of_mass) - np.asarray(PAYLOAD.center_of_mass))
    assert (errors < 4 * found.center_deviation).all() and found.center_deviation.max() < 0.004
    assert " kg, center x " in str(found)


def test_inertia_of_a_payload_is_not_taken_for_errors_of_masses() -> None:
    robot = replace(PANDA.robot, uncertainty=ModelUncertainty(mass=0.05))
    t = 2e-3 * np.arange(5000)
    states = Cosine(np.full(7, 0.5), 1.0 + 0.3 * np.arange(7), np.arange(7.0)).derivatives(t)
    found = eom.estimate_payload(eom.ExternalEffortObserver(eom.ElasticArm(robot), 30.0), t, **carried(states))
    assert abs(found.payload.mass - PAYLOAD.mass) < 0.5 * found.mass_deviation < 0.06
    errors = np.abs(np.asarray(found.payload.center_of_mass) - np.asarray(PAYLOAD.center_of_mass))
    assert (errors < 0.5 * found.center_deviation).all()


def test_slow_samples() -> None:
    """Of 12 Hz, as far apart as the observer takes them; slower ones and none are refused with what is needed."""
    observer = eom.ExternalEffortObserver(PANDA, 30.0)
    for rate in (12, 8, 0):
        t = np.arange(0.0, 20.0, 1 / rate) if rate else np.zeros(0)
        states = Cosine(np.full(7, 0.5), 0.3 + 0.1 * np.arange(7), np.arange(7.0)).derivatives(t)
        if rate == 12:
            assert eom.estimate_payload(observer, t, **carried(states)).payload.mass == pytest.approx(2.3, rel=2e-3)
            continue
        with pytest.raises(eom.StateError, match=r"0\.1.*apart.*0\.17"):
            eom.estimate_payload(observer, t, **carried(states))


@pytest.mark.parametrize("force", [0.0, 30.0])
def test_a_push_is_left_unexplained(force: float) -> None:
    """In one of four poses: beyond the thresholds of contact."""
    arm = eom.ElasticArm(eom.load_robot("iiwa"))
    observer, poses = eom.ExternalEffortObserver(arm, 30.0), np.random.default_rng(1).uniform(-1.2, 1.2, (4, 7))
    external = arm.dynamics.gravity(poses) - arm.dynamics.effort(poses, 0 * poses, 0 * poses, payload=PAYLOAD)
    external[1] += eom.Kinematics(arm.robot).jacobian(poses[1]).T @ [0, 0, 0, force, 0, 0]
    blocks = np.hstack([np.full((4, 1), 20.0), np.arange(4.0)[:, np.newaxis], poses, 0 * poses, external, 0 * poses])
    found = payload_of_efforts(observer, list(blocks), thresholds=ContactThresholds(observer))
    assert (np.max(found.unexplained / found.thresholds) > 1) == (force > 0)


def test_what_is_not_told() -> None:
    """Along gravity in a single pose, across the plane of an arm, and the mass from the center at a single joint."""
    observer, t = eom.ExternalEffortObserver(PANDA, 30.0), 1e-3 * np.arange(600)
    q = np.tile(np.linspace(0.3, 1.2, 7), (600, 1))
    found = eom.estimate_payload(observer, t, **carried((q, 0 * q, 0 * q)))
    down = eom.Kinematics(PANDA.robot).pose(q[0])[2, :3]
    np.testing.assert_allclose(np.abs(found.undetermined @ down), [1.0], atol=1e-6)
    left = np.asarray(PAYLOAD.center_of_mass) - np.asarray(found.payload.center_of_mass)
    np.testing.assert_allclose(left - left @ down * down, 0, atol=1e-6)
    assert found.payload.mass == pytest.approx(PAYLOAD.mass, rel=1e-4) and "mm, not determined along [" in str(found)
    planar = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    poses = np.repeat([[0.3, 0.5], [0.8, -0.9]], 600, axis=0)
    tau = planar.dynamics.effort(poses, 0 * poses, 0 * poses, payload=PAYLOAD)
    t = np.r_[t, t + 1]
    found = eom.estimate_payload(eom.ExternalEffortObserver(planar), t, poses, 0 * poses, tau=tau)
    np.testing.assert_allclose(np.abs(found.undetermined), [[0, 0, 1]], atol=1e-9)
    single = eom.ElasticArm(eom.load_robot("pendulum"))
    one = poses[:, :1]
    with pytest.raises(eom.StateError, match="poses"):
        eom.estimate_payload(eom.ExternalEffortObserver(single), t, one, 0 * one, tau=single.dynamics.gravity(one) + 1)
    tau = 0.5 * planar.dynamics.gravity(poses)
    with pytest.raises(eom.StateError, match="no mass explains the efforts: -"):
        eom.estimate_payload(eom.ExternalEffortObserver(planar), t, poses, 0 * poses, tau=tau)
    with pytest.raises(eom.StateError, match="external"):
        eom.estimate_payload(observer, t[:50], **{name: x[:50] for name, x in carried((q, 0 * q, 0 * q)).items()})
    with pytest.raises(eom.StateError, match="has no tool 'hand2'"):
        eom.estimate_payload(observer, t[:600], tool="hand2", **carried((q, 0 * q, 0 * q)))


def test_deviations_hold_for_arms_of_mujoco() -> None:
    """60 arms whose links are off by 5 %, four poses each: errors of 95 % are within 1.96 deviations."""
    mujoco = pytest.importorskip("mujoco")
    file = replace(eom.load_robot("iiwa"), uncertainty=ModelUncertainty(mass=0.05))
    file = replace(file, joints=tuple(replace(joint, effort_spread=None) for joint in file.joints))
    observer, draw, shares = eom.ExternalEffortObserver(eom.ElasticArm(file), 30.0), np.random.default_rng(0), []
    tool, t = file.tools[0], (1e-3 * np.arange(400) + np.arange(4)[:, np.newaxis]).ravel()
    plant = MujocoArm("iiwa")
    model, data, masses, centers = (
        plant.model,
        mujoco.MjData(plant.model),
        *map(np.copy, (plant.model.body_mass, plant.model.body_ipos)),
    )
    k, at = tool.joint + 1, (tool.pose @ np.r_[np.asarray(PAYLOAD.center_of_mass), 1])[:3]
    for _ in range(60):
        model.body_mass[:] = masses * (1 + 0.05 * draw.standard_normal(len(masses)))
        own = model.body_mass[k]
        model.body_mass[k] += PAYLOAD.mass
        model.body_ipos[k] = (own * centers[k] + PAYLOAD.mass * at) / model.body_mass[k]
        poses, rows = draw.uniform(-1.5, 1.5, (4, 7)), []
        for q in poses:
            data.qpos[:] = np.r_[q, q]
            mujoco.mj_inverse(model, data)
            rows.append(data.qfrc_inverse[:7].copy())
        q, tau = (np.repeat(x, 400, axis=0) for x in (poses, rows))
        tau += 0.1 * draw.standard_normal(tau.shape)
        found = eom.estimate_payload(observer, t, q, 0 * q, tau=tau)
        center = np.asarray(found.payload.center_of_mass) - np.asarray(PAYLOAD.center_of_mass)
        shares.append([(found.payload.mass - PAYLOAD.mass) / found.mass_deviation, *center / found.center_deviation])
    # The file bounds errors of centers and inertias, too, and of all links together: deviations are twice the errors.
    assert (np.mean(np.abs(shares) < 1.96, axis=0) >= 0.95).all()
    assert (np.sqrt(np.mean(np.square(shares), axis=0)) > 0.3).all()
