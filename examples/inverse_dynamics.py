# SPDX-License-Identifier: Apache-2.0
"""Joint efforts of the KUKA iiwa along a motion, with their first two time derivatives.

python examples/inverse_dynamics.py
"""

import numpy as np

import eom_dynamics as eom
from eom_dynamics.trajectory import paper_motion


def main() -> None:
    """Compute tau, taud, taudd for 5 s of motion, and compare the derivatives with central differences."""
    robot = eom.load_robot("iiwa")
    dynamics = eom.Dynamics(robot)

    t, step = np.linspace(0.0, 5.0, 5001, retstep=True)
    states = paper_motion().derivatives(t)  # q, qd, qdd, qddd, qdddd, each (N, n)
    tau, taud, taudd = dynamics.inverse_dynamics(*states)

    for name, rate, value in (("taud", taud, tau), ("taudd", taudd, taud)):
        difference = np.gradient(value, step, axis=0)[1:-1] - rate[1:-1]
        print(f"{name} against differences: {np.max(np.abs(difference)) / np.max(np.abs(rate)):.1e} of its peak")

    print(f"\n{'joint':10}{'max |tau|':>12}{'max |taud|':>12}{'max |taudd|':>13}")
    for i, joint in enumerate(robot.joint_names):
        peaks = [np.max(np.abs(x[:, i])) for x in (tau, taud, taudd)]
        print(f"{joint:10}{peaks[0]:9.2f} Nm{peaks[1]:8.1f} Nm/s{peaks[2]:8.0f} Nm/s²")


if __name__ == "__main__":
    main()
