# SPDX-License-Identifier: Apache-2.0
"""Ringing frequency of the tool after a tap, from a recording of joint_states, and the stiffness of each joint.

Usage: python examples/ringing.py RECORDING ROBOT, a bag or a table with positions or efforts after the tap, and the
file or name of the robot with its tool. The joint that swings has the largest amplitude.
"""

import sys
from pathlib import Path

import numpy as np

import eom_dynamics as eom
from eom_dynamics.recordings.joint_recordings import read_recording

LOWEST = 0.5  # Hz; below, there is drift


def ringing(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies, Hz, and amplitudes of the peaks of spectra of signals (N, n) at times (N,), s."""
    even = np.linspace(t[0], t[-1], len(t))
    x = np.stack([np.interp(even, t, column) for column in x.T], axis=1)
    window = np.hanning(len(t))[:, np.newaxis]
    count = 8 * len(t)  # zeros at the end, so that the peak is between few frequencies
    spectrum = np.abs(np.fft.rfft((x - x.mean(axis=0)) * window, count, axis=0)) * 2 / window.sum()
    f = np.fft.rfftfreq(count, even[1] - even[0])
    spectrum[f < LOWEST] = 0.0
    peak = spectrum.argmax(axis=0)
    return f[peak], spectrum.max(axis=0)


def main(path: str, name: str) -> None:
    """Print frequency, amplitude and stiffness of each joint."""
    try:
        robot = eom.load_robot(name)
        recording = read_recording(Path(path), robot)
    except eom.EomDynamicsError as error:
        sys.exit(str(error))
    has_efforts = bool(np.isfinite(recording.tau).all() and np.ptp(recording.tau) > 0)  # some drivers send zeros
    f, amplitude = ringing(recording.t, recording.tau if has_efforts else recording.q)
    mass = np.diag(eom.Dynamics(robot).mass_matrix(recording.q.mean(axis=0)))
    unit = "N m" if has_efforts else "rad"
    stiffness = (2 * np.pi * f) ** 2 * mass
    for joint, hz, size, K in zip(robot.joint_names, f, amplitude, stiffness, strict=True):
        print(f"{joint}: {hz:.2f} Hz, amplitude {size:.3g} {unit}, K = (2 pi f)^2 M = {K:.4g}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
