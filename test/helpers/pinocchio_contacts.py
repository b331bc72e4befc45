# SPDX-License-Identifier: Apache-2.0
"""Contacts in Pinocchio: Jacobians and accelerations of frames, and its own contact models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from differences import deviation
from pinocchio_model import PinocchioFloating

from eom_dynamics.arrays import Array
from eom_dynamics.contacts import Contact, ContactDynamics, SurfaceContact


def check_contacts(
    dynamics: ContactDynamics,
    model: pin.Model,
    configuration: Any,
    sticking: Array,
    tau: Array,
    floating: PinocchioFloating | None = None,
) -> None:
    """Assert that Jacobians, accelerations and forces are Pinocchio's, also at rates that do not stick."""
    peer = PinocchioContacts(model, dynamics.contacts)
    q = floating.configuration(*configuration) if floating else configuration
    there, back = (floating.rates, floating.back) if floating else (np.asarray, np.asarray)
    efforts, moving = there(np.append(np.zeros(len(sticking) - len(tau)), tau)), np.linspace(-1, 1, len(sticking))
    J, bias = peer.jacobian(q), peer.bias_acceleration(q, there(moving))
    assert deviation(dynamics.jacobian(configuration), back(J.T).T) < 1e-13
    assert deviation(dynamics.bias_acceleration(configuration, moving), bias) < 1e-13
    found = dynamics.forward_dynamics(configuration, moving, tau)
    expected = pin.forwardDynamics(model, peer.data, q, there(moving), efforts, J, bias)
    assert found.rank == dynamics.size
    assert deviation(found.acceleration, back(expected)) < 1e-8
    assert deviation(np.concatenate(list(found.forces.values())), peer.data.lambda_c) < 1e-8
    # Pinocchio's contact models are for sticking contacts.
    found = dynamics.forward_dynamics(configuration, sticking, tau)
    expected, forces = peer.acceleration(q, there(sticking), efforts)
    assert deviation(found.acceleration, back(expected), floor=1.0) < 1e-8  # zero if the contacts hold all joints
    assert deviation(np.concatenate(list(found.forces.values())), forces) < 1e-8


class PinocchioContacts:
    """Contacts of a model with frames of the names that they use."""

    def __init__(self, model: pin.Model, contacts: Sequence[Contact]) -> None:
        self.model, self.data, self.contacts = model, model.createData(), contacts
        self._frames = []
        for contact in contacts:
            frame = model.frames[model.getFrameId(contact.frame)]
            placement = frame.placement * pin.SE3(contact.pose)
            self._frames.append(
                model.addFrame(pin.Frame(f"contact {contact.name}", frame.parentJoint, 0, placement, pin.OP_FRAME))
            )
        self.data = model.createData()

    def jacobian(self, q: Array) -> Array:
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        return self._stacked(lambda frame, reference: pin.getFrameJacobian(self.model, self.data, frame, reference))

    def bias_acceleration(self, q: Array, v: Array) -> Array:
        """Acceleration at zero joint acceleration: of the twist in the frame, or of the point along fixed axes."""
        pin.forwardKinematics(self.model, self.data, q, v, 0 * v)
        pin.updateFramePlacements(self.model, self.data)

        def acceleration(frame: int, reference: pin.ReferenceFrame) -> Array:
            local = reference == pin.LOCAL
            of = pin.getFrameAcceleration if local else pin.getFrameClassicalAcceleration
            return of(self.model, self.data, frame, reference).vector

        return self._stacked(acceleration)

    def models(self) -> pin.StdVec_RigidConstraintModel:
        """Pinocchio's contact models, with forces along the axes of the contact frames."""
        models = pin.StdVec_RigidConstraintModel()
        for contact, index in zip(self.contacts, self._frames, strict=True):
            frame = self.model.frames[index]
            kind = pin.ContactType.CONTACT_6D if isinstance(contact, SurfaceContact) else pin.ContactType.CONTACT_3D
            models.append(pin.RigidConstraintModel(kind, self.model, frame.parentJoint, frame.placement, pin.LOCAL))
        return models

    def acceleration(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """By constraintDynamics: acceleration, and the forces in the axes of the contacts."""
        models = self.models()
        datas = pin.StdVec_RigidConstraintData()
        for model in models:
            datas.append(model.createData())
        pin.initConstraintDynamics(self.model, self.data, models, datas)
        # The proximal solver repeats until constraints hold.
        a = pin.constraintDynamics(
            self.model, self.data, q, v, tau, models, datas, pin.ProximalSettings(1e-14, 1e-14, 1e-12, 20)
        )
        pin.forwardKinematics(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        forces = []
        for contact, frame, data in zip(self.contacts, self._frames, datas, strict=True):
            R = np.eye(3) if contact.axes is None else contact.axes.T @ self.data.oMf[frame].rotation
            force = data.contact_force
            forces.append(np.concatenate([R @ force.angular, R @ force.linear])[-contact.size :])
        return np.array(a), np.concatenate(forces)

    def _stacked(self, of: object) -> Array:
        """Rows of all contacts, angular part first, from a function of frame and reference."""
        rows = []
        for contact, frame in zip(self.contacts, self._frames, strict=True):
            fixed = contact.axes is not None
            x = np.asarray(of(frame, pin.LOCAL_WORLD_ALIGNED if fixed else pin.LOCAL))
            R = contact.axes.T if fixed else np.eye(3)
            rows.append(np.concatenate([R @ x[3:], R @ x[:3]])[-contact.size :])
        return np.concatenate(rows)
