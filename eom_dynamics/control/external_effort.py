# SPDX-License-Identifier: Apache-2.0
"""Observer of external efforts by the generalized momentum of an arm: eom/external_effort.hpp, called from Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import count, number_or_vector, real_array
from ..arrays import Array
from ..codegen.functions import payload_keyword
from ..elastic import ElasticArm
from ..elastic.elastic_arm import require_arm
from ..exceptions import StateError
from ..robot.payload import PayloadLike, payload_shape
from ..spelling import hint
from .control_loop import ControlLoop
from .measured import SAMPLE_REASONS, STARTED, sample_reason
from .robot_table import RobotTable, matrices_of, raise_reason
from .settings import EFFORT_BANDWIDTH, SENSORS

# Arguments by name, and the bit of each in the sensors of eom_observer_update().
_BITS = {"q": 1, "qd": 1, "motor_position": 2, "motor_velocity": 2, "tau": 4, "motor_effort": 8, "k": 0, "P": 16}


class ObservedEfforts(NamedTuple):
    """External efforts along a recording of K samples.

    Attributes:
        external: (K, n) external efforts on the joints, N m or N; NaN for rejected samples.
        motor: (K, m) motor residuals, NaN for rejected samples; see :class:`ExternalEffortObserver`.
        q, qd: (K, n) link motion, measured or computed from the motors.
        settled: (K,) True if a step before the start has decayed to 1 %.
        left_out: a message for each rejected sample, with its index.
    """

    external: Array
    motor: Array
    q: Array
    qd: Array
    settled: NDArray[np.bool_]
    left_out: tuple[str, ...]


class ExternalEffortObserver:
    """Observer of external efforts and motor residuals by the generalized momentum, without accelerations.

    The generalized momentum p = M qd changes by tau - beta + tau_ext, with the effort tau on the links and
    beta = Q_grav - C' qd. The external effort is the change of p over a sample minus the change by tau - beta, filtered
    with bandwidth w: by w/(s + w), or for order 2 by (2 w s + w²)/(s + w)², which follows a ramp without lag. The step
    response is within 1 % after 5/w or 6.64/w; the noise bandwidth is w/4 or 5 w/8, Hz. Samples may be uneven or
    missing; after a gap of more than 0.1 s, the observer restarts. (A. De Luca, R. Mattone, ICRA 2005;
    S. Haddadin, A. De Luca, A. Albu-Schäffer, T-RO 33, 2017.)

    Sources of tau: ``torque`` sensors after the springs; ``springs``: motor and link encoders and the spring laws;
    ``motor``: encoders and efforts of the motors, minus rotors, friction and gear loss. Unmeasured link positions are
    motor positions minus the deflections under these efforts, filtered at 10 w. With the first two sources, motor
    efforts also give motor residuals: errors of friction, gear, current, or of the sensor of tau. Contact with a link
    does not change them.

    A sample is rejected if it is not finite, if its time does not increase, or if an effort is twice the joint's limit.
    It is also rejected if positions over 0.1 s differ from the integrated velocities by more than 10 ms of the joint's
    velocity limit (a jump, a stale or swapped sensor). Without limits, the last two conditions are not checked. The
    observer continues with the next sample.

    Attributes:
        arm: the arm.
        sensors: ``torque``, ``springs`` or ``motor`` for each joint.
        bandwidth: (n,) rad/s.
        order: order of the filters.
        settling: time until a step before the start has decayed to 1 %, s.
        external: (n,) external efforts on the robot after the last sample, N m or N.
        motor_residual: (m,) motor residuals on the link side of the gears, NaN if not observed.
        settled: True after the settling time.
    """

    def __init__(
        self,
        arm: ElasticArm,
        bandwidth: ArrayLike = EFFORT_BANDWIDTH,
        sensors: str | Sequence[str] = "torque",
        *,
        order: int = 1,
        loop: ControlLoop | None = None,
    ) -> None:
        """Create an observer, which starts with its first sample.

        Args:
            arm: the arm, in the reduced rotor model.
            bandwidth: rad/s, one number or (n,).
            sensors: ``torque``, ``springs`` or ``motor``, or one of them for each joint.
            order: 1 or 2.
            loop: control loop of the arm, if this is its observer: :meth:`watch` enables the observer of the loop, and
                :meth:`read` reads its last sample.

        Raises:
            StateError: an argument is invalid, or a joint has no measurable deflection.
            KernelError: the observer cannot be compiled.
        """
        require_arm(arm)
        n = arm.robot.n
        self.arm, self.order = arm, count(order, "order", 1, 2)
        self.bandwidth = np.array(number_or_vector(bandwidth, "bandwidth", n, "positive"))
        if isinstance(sensors, str) or not isinstance(sensors, Iterable):
            sensors = (sensors,) * n
        self.sensors = tuple(sensors)
        if len(self.sensors) != n:
            raise StateError(
                f"sensors has {len(self.sensors)} entries, must have {n} (one for each joint), or be a single name"
            )
        for joint, sensor, rigid in zip(arm.robot.joint_names, self.sensors, arm.rigid, strict=True):
            if sensor not in SENSORS:
                raise StateError(f"sensors has no {sensor!r}; {hint(sensor, SENSORS)}")
            if sensor == "springs" and rigid:
                raise StateError(f"{joint}: a rigid joint has no deflection to be measured; give 'torque' or 'motor'")
        if arm.rotors is not None:
            raise StateError("the observer has the reduced rotor model: ElasticArm(robot, rotor_model='reduced')")
        needed = [name for sensor in self.sensors for name in SENSORS[sensor]]
        if any(sensor == "motor" and pair for sensor, pair in zip(self.sensors, arm.paired, strict=True)):
            needed += ("q", "qd")  # which two motors tell only with the stiffness
        self._needed = tuple(dict.fromkeys(needed))
        table = loop.table if loop else RobotTable(arm)
        table.prepare_observer()
        self._loop = loop or ControlLoop(table)
        by_motor = np.array([self.sensors[i] == "motor" for i in arm.motor_joint])
        numbers = {
            "bandwidth": self.bandwidth,
            "order": np.full(n, self.order),
            "source": [[*SENSORS].index(sensor) for sensor in self.sensors],
        }
        self._set(numbers)
        self._unobserved, self._to_springs = by_motor, matrices_of(arm)["to_springs"]
        self._motion = self._loop.vectors("observed", {"q": n, "qd": n})
        self.settling: float = self._loop.record.settling
        self.reset()

    def _set(self, numbers: dict[str, Any]) -> None:
        library, address = self._loop.handle.library, self._loop.address
        for name, values in numbers.items():
            row = np.ascontiguousarray(values, dtype=float).ravel()
            reason = library.observer_set(address, name.encode(), row.ctypes.data, len(row))
            raise_reason(reason, name)

    def watch(self, speeds: Array, errors: Array, noise: Array) -> None:
        """Enable the observer of the loop, with contact thresholds from :meth:`.ContactThresholds.rows`."""
        self._set({"speeds": speeds, "errors": errors, "noise": noise})

    def read(self) -> tuple[Array, Array]:
        """Read external efforts (n,) and motor residuals (m,) after the last sample of the loop."""
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        vectors = self._loop.vectors("external", {"tau": n, "motor_effort": m})
        record = self._loop.record
        self.external, self.settled = vectors["tau"].copy(), record.settled
        self.motor_residual = vectors["motor_effort"].copy()
        self.motor_residual[self._unobserved | (not record.efforts)] = np.nan
        return self.external, self.motor_residual

    @property
    def motion(self) -> tuple[Array, Array]:
        """Copies of q and qd of the links, (n,), after the last sample, measured or found from the motors."""
        return self._motion["q"].copy(), self._motion["qd"].copy()

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the required sensors, as arguments of :meth:`update`."""
        return self._needed

    @property
    def spring_residual(self) -> Array:
        """Motor residuals (n,) as efforts of their springs, N m or N; NaN if not observed."""
        residual = np.zeros(self.arm.robot.n)
        np.add.at(residual, self.arm.motor_joint, self._to_springs @ np.nan_to_num(self.motor_residual))
        residual[self.arm.motor_joint[np.isnan(self.motor_residual)]] = np.nan
        return residual

    def reset(self) -> None:
        """Forget all samples."""
        gap = np.array([0.0])
        self._loop.handle.library.observer_set(self._loop.address, b"restart", gap.ctypes.data, 0)
        self._start = np.nan
        self.external = np.zeros(self.arm.robot.n)
        self.motor_residual = np.full(len(self.arm.motor_names), np.nan)
        self.settled = False

    def update(self, t: float, *motion: ArrayLike, payload: PayloadLike | None = None, **sensors: ArrayLike) -> Array:
        """Process a sample.

        Args:
            t: time, s.
            motion: q and qd of the links, (n,), rad or m and per s; not needed by ``motor`` sensors.
            payload: payload of the tools, as for :meth:`.Dynamics.inverse_dynamics`; a change causes no step.
            sensors: by name: ``tau`` (n,) of torque sensors; ``motor_position``, ``motor_velocity``, ``motor_effort``
                (m,) on the link side of the gears as in :class:`.Feedforward`, converted from drive units by
                :meth:`.ElasticArm.drive_state`; ``k`` (n,), commanded stiffness.

        Returns:
            (n,) external efforts on the joints, N m or N.

        Raises:
            StateError: a sensor is missing, or the sample is rejected; the observer continues with the next sample.
        """
        measurements = self._given(dict(zip(("q", "qd"), motion, strict=False)) | sensors, (), payload, finite=True)
        (external, motor, *_), codes = self._run(np.array([real_array(t, "t", ())]), measurements)
        if reason := sample_reason(codes[0], self.arm.robot.joint_names):
            raise StateError(f"sample at t = {float(t):.6g} s rejected: {reason}")
        self._settle(np.array([float(t)]), codes)
        self.external, self.motor_residual = external[0], motor[0]
        return self.external.copy()

    def observe(
        self, t: ArrayLike, *motion: ArrayLike, payload: PayloadLike | None = None, **sensors: ArrayLike
    ) -> ObservedEfforts:
        """Process a recording of K samples; arguments as for :meth:`update`, with a leading axis K.

        Rejected samples, also by NaN, do not raise errors; see ``left_out``.
        """
        times = real_array(t, "t", finite=False)
        if times.ndim != 1:
            raise StateError(f"t must have shape (K,), has {times.shape}")
        measurements = self._given(
            dict(zip(("q", "qd"), motion, strict=False)) | sensors, times.shape, payload, finite=False
        )
        outputs, codes = self._run(times, measurements)
        out = np.isin(codes % 8, [*SAMPLE_REASONS])
        for values in outputs:
            values[out] = np.nan
        lines = tuple(
            f"sample {k}: {sample_reason(codes[k], self.arm.robot.joint_names)}" for k in np.flatnonzero(out).tolist()
        )
        settled = self._settle(times, codes) & ~out
        if (~out).any():
            last = np.flatnonzero(~out)[-1]
            self.external, self.motor_residual = outputs[0][last].copy(), outputs[1][last].copy()
        external, motor, q, qd = outputs
        return ObservedEfforts(external, motor, q, qd, settled, lines)

    def _settle(self, t: Array, codes: NDArray[np.intc]) -> NDArray[np.bool_]:
        """True if each sample (K,) is settled; keeps the last start."""
        started = np.where(codes % 8 == STARTED, t, -np.inf)
        start = np.fmax(np.maximum.accumulate(started), self._start) if len(t) else started
        settled = t - start >= self.settling
        if len(t):
            self._start, self.settled = float(start[-1]), bool(settled[-1])
        return settled

    def _given(
        self, values: dict[str, Any], samples: tuple[int, ...], payload: PayloadLike | None, *, finite: bool
    ) -> dict[str, Array]:
        """Vectors of the samples by name, each (…, size)."""
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        if unknown := [name for name in values if name not in _BITS or name == "P"]:
            raise StateError(f"no signal is called {unknown[0]!r}; {hint(unknown[0], [*_BITS][:-1])}")
        if missing := [name for name in self._needed if values.get(name) is None]:
            raise StateError(f"{missing[0]}: missing; sensors {', '.join(dict.fromkeys(self.sensors))} need it")
        for pair in (("q", "qd"), ("motor_position", "motor_velocity")):
            if sum(values.get(name) is not None for name in pair) == 1:
                raise StateError(f"{' and '.join(pair)} must be given together")
        measurements = {
            name: real_array(x, name, (*samples, m if name.startswith("motor") else n), finite=finite)
            for name, x in values.items()
            if x is not None
        }
        if payload is not None:
            P = payload_keyword(self.arm.robot, 1).arrays(payload, samples, finite=True)[0]
            shape = payload_shape(self.arm.robot)
            measurements["P"] = np.broadcast_to(P, samples + shape).reshape(*samples, math.prod(shape))
        return measurements

    def _run(self, t: Array, measurements: dict[str, Array]) -> tuple[list[Array], NDArray[np.intc]]:
        """External efforts (K, n), residuals (K, m), q and qd (K, n), and codes (K,)."""
        rows = np.concatenate([x.reshape(len(t), x.shape[-1]) for x in measurements.values()], axis=1)
        library, address = self._loop.handle.library, self._loop.address
        places = [
            (library.loop_vector(address, b"sensed", name.encode()), x.shape[-1]) for name, x in measurements.items()
        ]
        vectors, bits = np.array(places, dtype=np.uint64), sum({_BITS[name] for name in measurements})
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        results = np.empty((len(t), 3 * n + m))
        codes, t = np.empty(len(t), dtype=np.intc), np.ascontiguousarray(t)
        library.observer_update(
            *(address, len(t), t.ctypes.data, bits, vectors.ctypes.data, len(measurements)),
            *(rows.ctypes.data, results.ctypes.data, codes.ctypes.data),
        )
        observed = {"motor_effort", "motor_position"} <= measurements.keys()
        outputs = np.split(results, np.cumsum([n, m, n]), axis=1)
        outputs[1][:, self._unobserved | (not observed)] = np.nan
        return outputs, codes
