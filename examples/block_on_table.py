# SPDX-License-Identifier: Apache-2.0
"""A block on a table, pushed ever harder and then let go: it sticks, slides and comes to rest.

python examples/block_on_table.py
"""

import numpy as np

import eom_dynamics as eom
from eom_dynamics.arrays import Array

MASS, FRICTION, PUSHED_AT = 2.0, 0.4, 0.03  # kg, coefficient of friction, height of the push above the table in m
STEP, PUSH_ENDS, END = 0.001, 1.0, 2.5  # s
LIMIT = FRICTION * MASS * 9.80665  # largest friction, N

BLOCK = f"""<robot name="block"><link name="table"/><link name="block"><inertial>
<origin xyz="0 0 0.05"/><mass value="{MASS}"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial></link>
<joint name="free" type="floating"><parent link="table"/><child link="block"/></joint></robot>"""


def push(t: float) -> float:
    """Push along x, N: it rises to twice the limit of friction within 1 s."""
    return 2 * LIMIT * t if t < PUSH_ENDS else 0.0


def acceleration(block: eom.contacts.ContactDynamics, q: Array, qd: Array, force: float) -> tuple[Array, str, float]:
    """Acceleration of the block under a push, whether it sticks or slides, and its normal force to spare, N."""
    efforts = np.array([force, 0.0, 0.0, 0.0, PUSHED_AT * force, 0.0])  # on x, y, z, yaw, pitch, roll
    if abs(qd[0]) < 1e-6:
        sticking = block.forward_dynamics(q, np.zeros(6), efforts)
        spare = block.margins(sticking.forces, faces=8)["bottom"]
        if abs(sticking.forces["bottom"][3]) <= LIMIT:
            return sticking.acceleration, "sticks", spare
    # At rest, it starts to slide in the direction of the push; later, friction opposes its velocity.
    direction = [np.sign(qd[0]) or np.sign(force), 0.0]
    sliding = block.forward_dynamics(q, qd, efforts, sliding={"bottom": direction})
    return sliding.acceleration, "slides", 0.0


def main() -> None:
    """Integrate the motion, and compare it with the textbook."""
    bottom = eom.contacts.SurfaceContact.rectangle("bottom", "block", FRICTION, half_lengths=(0.15, 0.1))
    block = eom.contacts.ContactDynamics(eom.load_robot(BLOCK), [bottom])
    (q, qd), before = np.zeros((2, 6)), ""
    for k in range(round(END / STEP)):
        t = (k + 0.5) * STEP
        qdd, mode, spare = acceleration(block, q, qd, push(t))
        if mode != before:
            print(f"{t:5.3f} s: {mode:6}  push {push(t):6.3f} N, speed {qd[0]:.3f} m/s, {spare:.2f} N to spare")
            before = mode
        moved = qd + STEP * qdd
        # Friction stops the block, but does not turn it back.
        if mode == "slides" and qd[0] > 0 and moved[0] < 0:
            moved = np.zeros(6)
        q, qd = q + 0.5 * STEP * (qd + moved), moved

    # The push 2 mu m g t exceeds mu m g after 0.5 s: v = mu g (t - 0.5)² until it ends, and falls by mu g per s then.
    g, pushed = FRICTION * 9.80665, PUSH_ENDS - 0.5
    speed = g * pushed**2
    distance = g * pushed**3 / 3 + speed**2 / (2 * g)
    print(f"distance {q[0]:.4f} m, by hand {distance:.4f} m")


if __name__ == "__main__":
    main()
