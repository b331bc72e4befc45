# SPDX-License-Identifier: Apache-2.0
"""A smooth trajectory through waypoints, checked against all limits and slowed down until it meets them.

python examples/trajectory_limits.py
"""

import numpy as np

import eom_dynamics as eom
from eom_dynamics.trajectory import check, through


def main() -> None:
    """Check position, velocity, acceleration, jerk, effort and effort rate of the Panda along a fast motion."""
    arm = eom.ElasticArm(eom.load_robot("panda"))
    times = [0.0, 0.5, 0.8]
    positions = np.array(
        [
            [0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0],
            [0.5, 0.3, 0.2, -2.0, 0.3, 1.8, 0.4],
            [0.8, 0.5, 0.0, -2.2, 0.0, 2.2, 0.8],
        ]
    )
    trajectory = through(times, positions)  # continuous up to the sixth derivative, at rest at both ends

    verdict = check(arm, trajectory, rate=1000.0)
    print(f"as planned, {trajectory.end:.2f} s: {'within' if verdict.ok else 'beyond'} the limits")
    for peak in sorted(verdict.peaks, key=lambda peak: -peak.ratio)[:3]:
        print(f"  {peak}")

    if verdict.time_scaling is None:
        raise SystemExit("slower motion does not help: a position or a static effort is beyond its limit")
    slower = trajectory.scaled(verdict.time_scaling)
    print(f"slowed down by {verdict.time_scaling:.3f}, {slower.end:.2f} s: ", end="")
    print("within the limits" if check(arm, slower, rate=1000.0).ok else "beyond the limits")


if __name__ == "__main__":
    main()
