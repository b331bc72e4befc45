# SPDX-License-Identifier: Apache-2.0
"""The fastest motion of the Panda through waypoints, with and without limits of effort rate and jerk.

python examples/minimum_time.py
"""

from dataclasses import replace

import numpy as np

import eom_dynamics as eom
from eom_dynamics.trajectory import check, minimum_time


def main() -> None:
    """Compare durations and effort rates, and print which limits determine the speed."""
    arm = eom.ElasticArm(eom.load_robot("panda"))
    waypoints = np.array(
        [
            [0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0],
            [0.5, 0.3, 0.2, -2.0, 0.3, 1.8, 0.4],
            [0.8, 0.5, 0.0, -2.2, 0.0, 2.2, 0.8],
        ]
    )
    unlimited = {"acceleration": np.inf, "jerk": np.inf, "effort_rate": np.inf}
    loose = {joint.name: replace(joint.limits, **unlimited) for joint in arm.robot.joints}
    for name, limits in (("velocity and effort", loose), ("all limits", None)):
        motion = minimum_time(arm, waypoints, limits=limits)
        rate = max(
            abs(peak.value) for peak in check(arm, motion, rate=10_000.0).peaks if peak.quantity == "effort_rate"
        )
        print(f"{name}: {motion.duration:.3f} s, effort rate up to {rate:,.0f} N m/s")
    longest = sorted(motion.active, key=lambda each: each.start - each.end)
    for each in sorted(longest[:4]):
        print(f"  {each}")
    print("within the limits" if check(arm, motion, rate=10_000.0).ok else "beyond the limits")


if __name__ == "__main__":
    main()
