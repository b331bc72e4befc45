# SPDX-License-Identifier: Apache-2.0
"""Identify the inertias and friction of a simulated arm from a recording; its file does not contain them."""

from dataclasses import replace

import numpy as np

import eom_dynamics as eom
from eom_dynamics.identification import Recording, fit, identified_robot

# The arm of the file, and the true arm: a heavier last link, and friction.
robot = eom.load_robot("sea_planar_2r")
upper, fore = robot.joints
true = replace(
    robot,
    joints=(
        replace(upper, damping=0.8, friction=0.6),
        replace(fore, mass=1.3, inertia_about_origin=1.4 * fore.inertia_about_origin, damping=0.5, friction=0.4),
    ),
)

# A minute of both joints in several frequencies, with noise of encoders and torque sensors.
t = np.arange(0.0, 60.0, 0.005, dtype=np.float64)
phases = 2 * np.pi * np.outer(t, [0.11, 0.37, 0.83])
q = np.column_stack([np.sin(phases) @ [0.8, 0.4, 0.1], np.cos(phases) @ [0.5, 0.6, 0.2]])
qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
tau = eom.Dynamics(true, friction=True).effort(q, qd, qdd)
noise = np.random.default_rng(0)
recording = Recording(
    robot.joint_names, t, q + 1e-5 * noise.standard_normal(q.shape), tau + 0.1 * noise.standard_normal(q.shape)
)

training, validation = recording.split(0.3)
found = fit(robot, training, validation)
assert found.validation is not None
print(f"cut-off {found.filter.cutoff:.1f} Hz; base parameters:")
for words, value, deviation in zip(found.regressor.base.words, found.estimate.x, found.base_deviations, strict=False):
    print(f"  {words:18} {value:8.4f} ± {deviation:.4f}")
for name, before, after in zip(robot.joint_names, found.validation.before, found.validation.after, strict=True):
    print(f"{name}: RMS residual {before:.3f} N m by the file, {after:.3f} N m as identified")

identified = identified_robot(found)
# In the plane, only the product of mass and center of mass of the last link is identifiable.
for title, arm in (("file", robot), ("arm", true), ("identified", identified)):
    link = arm.joints[1]
    print(f"{title}: last link {link.mass * link.center_of_mass[0]:.3f} kg m")
