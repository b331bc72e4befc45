# SPDX-License-Identifier: Apache-2.0
"""An arm in MIT mode: a CAN frame of position, velocity, stiffness, damping and torque for each motor.

Usage: python examples/drivers/mit_mode.py CAN MOTOR=ID..., as can0 shoulder=1 elbow=2, next to the dynamics node of the
robot: it forwards ``motor_setpoint``. The frame is used by the drives of the Mini Cheetah and of Damiao; ranges and
gains are EXAMPLE VALUES: use the data sheets of your motors. Not tested on hardware.
"""

import contextlib
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parent.parent))


class Ranges(NamedTuple):
    """Largest magnitudes of a frame: rad, rad/s, N m; and largest gains, N m/rad and N m s/rad."""

    position: float = 12.5
    velocity: float = 30.0
    torque: float = 10.0
    kp: float = 500.0
    kd: float = 5.0


def frame(position: float, velocity: float, kp: float, kd: float, torque: float, ranges: Ranges) -> bytes:
    """Frame of 8 bytes: 16 bits of position, and 12 each of velocity, kp, kd and torque; values are clipped."""

    def bits(x: float, low: float, high: float, count: int) -> int:
        return round((min(max(x, low), high) - low) / (high - low) * (2**count - 1))

    p = bits(position, -ranges.position, ranges.position, 16)
    v = bits(velocity, -ranges.velocity, ranges.velocity, 12)
    stiff, damped = bits(kp, 0.0, ranges.kp, 12), bits(kd, 0.0, ranges.kd, 12)
    t = bits(torque, -ranges.torque, ranges.torque, 12)
    return (p << 48 | v << 36 | stiff << 24 | damped << 12 | t).to_bytes(8, "big")


KP, KD = 30.0, 1.0  # of the drives; kp of zero leaves the arm to gravity compensation, and to hands
SHARE = 1.0  # of the torques; 0.5 for a first test


def main() -> None:
    """Send frames until a signal."""
    import rclpy
    from motor_setpoint_bridge import Bridge

    class MitMode(Bridge):
        def __init__(self, can: str, motors: dict[str, int]) -> None:
            super().__init__("", 0, list(motors))
            self._can, self._ids = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW), motors.values()
            self._can.bind((can,))

        def send(self, values: list[float]) -> None:
            for number, (q, qd, torque) in zip(self._ids, zip(*[iter(values)] * 3, strict=True), strict=True):
                self._can.send(struct.pack("=IB3x8s", number, 8, frame(q, qd, KP, KD, SHARE * torque, Ranges())))

    rclpy.init()
    _, *given = rclpy.utilities.remove_ros_args(sys.argv)
    if len(given) < 2 or not all("=" in x for x in given[1:]):
        sys.exit("usage: mit_mode.py CAN MOTOR=ID..., as can0 shoulder=1 elbow=2")
    can, *motors = given
    ids = {name: int(number) for name, _, number in (x.partition("=") for x in motors)}
    try:
        with contextlib.suppress(KeyboardInterrupt):
            rclpy.spin(MitMode(can, ids))
    except OSError as error:
        sys.exit(f"{can}: {error.strerror}: is it up? ip link set {can} up type can bitrate 1000000")


if __name__ == "__main__":
    main()
