# SPDX-License-Identifier: Apache-2.0
"""MJCF reader: the model as MuJoCo compiles it, so that includes, defaults, frames and units are MuJoCo's business.

A body with several joints becomes a chain of them with massless links between. Shapes only matter for moving bodies
without ``<inertial>``; meshes and textures of other bodies are not opened.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import lie
from ...actuators.actuator import Actuator, Motor
from ...actuators.friction import Friction
from ...actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from ...arguments import violation
from ...arrays import Array
from ...exceptions import RobotDescriptionError, require
from ...spelling import listed, unused_name
from ..description import Description, FrameDescription, JointDescription, LinkDescription, MimicDescription
from ..inertia import Inertial
from ..model import NO_LIMITS, Limits
from .files import MAX_CHARACTERS, DescriptionFile, refuse_doctype, refuse_special_file, root_tag

# Names of files, and folders that they may be in; MuJoCo finds them also in XML that other parsers refuse.
_FILE = re.compile(r"""<(\w+)(?=\s)[^<>]*?\sfile\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_FOLDER = re.compile(r"""\s(?:meshdir|assetdir)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_MODELS = ("include", "model")

_ALL_FROM_SHAPES = 1  # inertiafromgeom="true"

_VOLTAGE = 8  # bit of the inputs of a DC motor, of MuJoCo's actuator_ctrlspec

_TYPES = ("floating", "ball", "prismatic", "revolute")  # in the order of mjtJoint


def is_mjcf(text: str) -> bool:
    """True if a text is MJCF."""
    return root_tag(text) == "mujoco"


def read_mjcf_file(file: DescriptionFile) -> Description:
    """Read an MJCF model.

    Raises MissingLibraryError without MuJoCo; RobotDescriptionError if MuJoCo refuses the model, with its reason, or
    nothing moves.
    """
    file.refuse_inertia_reference()
    compiled = compiled_model(file)
    return _Reader(file.label, compiled.model, compiled.shapeless).description(compiled.name, compiled.warnings)


class Compiled(NamedTuple):
    """Name of a model, its ``MjModel``, and warnings of MuJoCo, one line each.

    Bodies ``shapeless``, fixed to the world without ``<inertial>``, do not have the inertia of their shapes.
    """

    name: str
    model: Any
    shapeless: set[int]
    warnings: tuple[str, ...]


def compiled_model(file: DescriptionFile) -> Compiled:
    """Compile a model with MuJoCo, without shapes that no inertia depends on; errors as :func:`read_mjcf_file`."""
    text = file.text(MAX_CHARACTERS)
    if not is_mjcf(text):
        raise RobotDescriptionError(f"{file.label}: the root element must be <mujoco>, is <{root_tag(text)}>")
    refuse_doctype(text, file.label)
    _refuse_special_files(text, Path() if file.path is None else file.path.parent)
    require("mjcf")
    import mujoco

    messages: list[str] = []
    # Else MuJoCo prints its warnings, and writes them into a file in the working directory.
    former = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            if file.path is None:
                spec = mujoco.MjSpec.from_string(text)
            else:  # of any ending, as an .xml in the same folder, which files that it names are relative to
                place = str(file.path.with_suffix(".xml"))
                spec = mujoco.MjSpec.from_file(place, include={place: text.encode()})
            still = _without_unused_assets(spec)
            model = spec.compile()
    except ValueError as error:
        raise RobotDescriptionError(f"{file.label}: MuJoCo refuses it: {_line(error, ', ')}") from None
    finally:
        mujoco.set_mju_user_warning(former)
    lines = dict.fromkeys(_line(message) for message in (*messages, *(warning.message for warning in caught)))
    if any("NaN" in line for line in lines):
        raise RobotDescriptionError(f"{file.label}: all numbers must be finite, there is a NaN")
    by_file = "robot" if file.path is None else file.path.stem
    name = by_file if spec.modelname in ("", "MuJoCo Model") else spec.modelname
    return Compiled(name, model, {body.id for body in still}, tuple(lines))


def _refuse_special_files(text: str, folder: Path) -> None:
    """Refuse files of a model in a folder that are pipes or devices: MuJoCo would wait for their content."""
    texts, read, folders, names = [text], set[Path](), [folder], set[str]()
    while texts:
        text = texts.pop()
        folders += {folder / (one or other) for one, other in _FOLDER.findall(text)}.difference(folders)
        for tag, one, other in _FILE.findall(text):
            names.add(one or other)
            for path in {place / (one or other) for place in folders} - read if tag in _MODELS else ():
                if os.path.isfile(path):
                    read.add(path)
                    folders += {path.parent}.difference(folders)
                    with suppress(OSError):  # MuJoCo says why
                        texts.append(path.read_text(encoding="utf-8", errors="replace"))
    for path in (place / name for place in folders for name in names):
        if not os.path.isdir(path):
            refuse_special_file(path)


def _line(message: object, separator: str = " ") -> str:
    return separator.join(" ".join(line.split()) for line in str(message).strip().splitlines())


def _without_unused_assets(spec: Any) -> list[Any]:
    """Remove materials, and meshes that no inertia depends on, so that their files are not opened.

    Returns bodies without ``<inertial>`` that are fixed to the world: their shapes are not used, either.
    """
    import mujoco

    mesh_types = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF)
    without_inertial, used = [], set()
    all_count = spec.compiler.settotalmass > 0  # it scales all bodies by the total mass, with bodies fixed to the world
    waiting = [(spec.worldbody, False)]
    while waiting:
        body, moves = waiting.pop()
        moves = moves or bool(body.joints)
        waiting += [(child, moves) for child in body.bodies]
        compiler = getattr(body, "compiler", spec.compiler)  # since MuJoCo 3.5, an attached model has its own
        has_inertial = body.explicitinertial and int(compiler.inertiafromgeom) != _ALL_FROM_SHAPES
        if not moves and not has_inertial:
            without_inertial.append(body)
        for geom in body.geoms:
            geom.material = ""
            if (moves or all_count) and not has_inertial:
                used |= {geom.meshname, geom.hfieldname}
                continue
            if geom.type in mesh_types or geom.meshname:
                geom.type, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, [1.0, 1.0, 1.0]
            geom.meshname = geom.hfieldname = ""
    for element in (*spec.sites, *spec.tendons, *spec.flexes):
        element.material = ""
    for light in spec.lights:
        light.texture = ""
    unused = [asset for asset in (*spec.meshes, *spec.hfields) if asset.name not in used]
    for asset in (*spec.skins, *spec.textures, *spec.materials, *unused):
        spec.delete(asset)
    return without_inertial


class _Reader:
    """Reads a compiled model; of the bodies ``shapeless``, no inertia by their shapes is read."""

    def __init__(self, label: str, model: Any, shapeless: set[int]) -> None:
        import mujoco

        self._label, self._mujoco, self._model, self._shapeless = label, mujoco, model, shapeless
        self._left_out: defaultdict[str, list[str]] = defaultdict(list)
        self._assumed: defaultdict[str, list[str]] = defaultdict(list)
        self._links: list[str] = []
        for i in range(model.nbody):
            self._links.append(unused_name(model.body(i).name or f"body_{i}", self._links))
        self._joints: list[str] = []
        for j in range(model.njnt):
            name = model.joint(j).name or f"{self._links[model.jnt_bodyid[j]]}_joint"
            self._joints.append(unused_name(name, self._joints))
        # Since MuJoCo 4, there may be several controls of an actuator.
        self._actuator_names = [
            model.actuator(i).name or f"actuator_{i}" for i in range(getattr(model, "nactuator", model.nu))
        ]
        self._actuators = self._read_actuators()
        self._site_names: list[str] = []
        if model.ntendon:
            names = (model.tendon(t).name or f"tendon_{t}" for t in range(model.ntendon))
            self._left_out["tendons are ignored"] += names
        self._rotors = np.array(model.dof_armature)
        self._mimics = self._read_equalities()

    def description(self, name: str, messages: Sequence[str]) -> Description:
        """The model; warnings, after ``messages``, name its contents other than links, joints and sites."""
        model = self._model
        links = {
            name: LinkDescription(name, self._inertial(body), f"body {name}") for body, name in enumerate(self._links)
        }
        joints: list[JointDescription] = []
        for body in range(1, model.nbody):
            for joint in self._chain(body, links):
                links.setdefault(joint.child, LinkDescription(joint.child, None, joint.where))
                joints.append(joint)
        sites = tuple(self._sites(links))
        self._report_ignored_properties()
        weightless = model.opt.disableflags & int(self._mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        return Description(
            name=name,
            source=self._label,
            links=links,
            joints=tuple(joints),
            gravity=np.zeros(3) if weightless else np.array(model.opt.gravity),
            frames=sites,
            tools=self._tools(sites),
            assumed=_lines(self._assumed),
            warnings=(*messages, *_lines(self._left_out)),
        )

    def _inertial(self, body: int) -> Inertial | None:
        if body == 0 or body in self._shapeless:
            return None
        model = self._model
        principal = Inertial(float(model.body_mass[body]), np.zeros(3), np.diag(model.body_inertia[body]))
        return principal.moved(_pose(model.body_ipos[body], model.body_iquat[body]))

    def _chain(self, body: int, taken: Container[str]) -> Iterator[JointDescription]:
        """Joints of a body, from its parent to itself; a fixed joint for a body without joints."""
        model, link = self._model, self._links[body]
        pose = _pose(model.body_pos[body], model.body_quat[body])
        parent, first = self._links[model.body_parentid[body]], int(model.body_jntadr[body])
        indices = range(first, first + int(model.body_jntnum[body]))
        if not indices:
            name = unused_name(f"{link}_fixed", self._joints)
            yield JointDescription(name, "fixed", parent, link, pose, np.zeros(6), f"body {link}")
        for j in indices:
            name = self._joints[j]
            child = link if j == indices[-1] else unused_name(f"{link}_{name}", taken)
            at = JointDescription(name, _TYPES[model.jnt_type[j]], parent, child, pose, np.zeros(6), f"joint {name}")
            yield self._joint(j, at)
            parent, pose = child, np.eye(4)

    def _joint(self, j: int, at: JointDescription) -> JointDescription:
        """The joint at a pose and between links that are known, with all that the model says of it."""
        model, dof, position = self._model, int(self._model.jnt_dofadr[j]), int(self._model.jnt_qposadr[j])
        if at.type in ("floating", "ball"):
            dofs = slice(dof, dof + (6 if at.type == "floating" else 3))
            forces = (model.dof_damping[dofs], model.dof_armature[dofs], model.dof_frictionloss[dofs])
            if np.any(forces) or model.jnt_stiffness[j] or model.jnt_limited[j]:
                what = "limits, springs, damping and armature of free and ball joints are ignored"
                self._left_out[what].append(at.name)
            return replace(at, screw=np.r_[np.zeros(3), model.jnt_pos[j] if at.type == "ball" else np.zeros(3)])
        screw = self._screw(j)
        limits = Limits(*model.jnt_range[j].tolist()) if model.jnt_limited[j] else NO_LIMITS
        for what, values in (("damping", model.dof_damping), ("frictionloss", model.dof_frictionloss)):
            if reason := violation(values[dof], "not negative"):
                raise RobotDescriptionError(f"{self._label}: {at.where}: {what} {reason}")
        joint = replace(
            at,
            type="continuous" if at.type == "revolute" and not model.jnt_limited[j] else at.type,
            origin=at.origin @ lie.exp(screw, -model.qpos0[position]) if model.qpos0[position] else at.origin,
            screw=screw,
            mimic=self._mimics.get(j),
            limits=limits,
            damping=float(model.dof_damping[dof]),
            friction=float(model.dof_frictionloss[dof]),
            parallel_spring=_parallel_spring(model.jnt_stiffness[j], model.qpos_spring[position]),
            rotor_inertia=float(self._rotors[dof]),
        )
        return self._with_motor(j, joint)

    def _with_motor(self, j: int, joint: JointDescription) -> JointDescription:
        """The joint with its actuators: gear, rotor, friction and the largest effort."""
        model, actuators = self._model, self._actuators.get(j, [])
        gears = model.actuator_gear[actuators, 0]
        limits = [abs(gear) * self._largest_force(i) for gear, i in zip(gears, actuators, strict=True)]
        of_motor = largest = sum(limits) if limits else np.inf
        if model.jnt_actfrclimited[j]:
            largest = min(largest, self._symmetric(model.jnt_actfrcrange[j], joint.where))
        joint = replace(joint, limits=replace(joint.limits, effort=largest))
        if joint.mimic is not None:
            if actuators:
                self._left_out["actuators of joints that follow others by an equality are ignored"].append(joint.name)
            return replace(joint, rotor_inertia=0.0)
        if len({*gears}) > 1:
            self._assumed["several actuators are one without a gear"].append(joint.name)
        ratio = float(gears[0]) if len({*gears}) == 1 else 1.0
        viscous = float(gears**2 @ self._of_actuators("actuator_damping", actuators))
        return replace(
            joint,
            gear_ratio=ratio,
            rotor_inertia=joint.rotor_inertia + float(gears**2 @ self._of_actuators("actuator_armature", actuators)),
            actuator=Actuator(
                friction=Friction(viscous=viscous),
                motor=self._motor(actuators, of_motor / abs(ratio) if actuators else np.inf),
            ),
        )

    def _motor(self, actuators: Sequence[int], torque_limit: float) -> Motor:
        """Motor of a joint, with the constants of a DC motor, if it is one."""
        if len(actuators) != 1 or not self._is_dc_motor(actuators[0]):
            return Motor(torque_limit=torque_limit)
        model, i = self._model, actuators[0]
        resistance, constant = model.actuator_gainprm[i, :2].tolist()
        control = int(model.actuator_ctrladr[i])
        voltages = [float(model.actuator_dynprm[i, 1]) or np.inf]
        if model.actuator_ctrlspec[i] & _VOLTAGE and model.actuator_ctrllimited[control]:
            voltages.append(self._symmetric(model.actuator_ctrlrange[control], self._actuator_names[i]))
        return Motor(constant, resistance, torque_limit=torque_limit, voltage_limit=min(voltages))

    def _screw(self, j: int) -> Array:
        model = self._model
        pitch = np.inf if _TYPES[model.jnt_type[j]] == "prismatic" else 0.0
        return lie.screw(model.jnt_axis[j], model.jnt_pos[j], pitch)

    def _is_single(self, j: int) -> bool:
        return self._model.jnt_type[j] >= _TYPES.index("prismatic")

    def _read_actuators(self) -> dict[int, list[int]]:
        """Actuators by the joint that each drives."""
        model, mujoco = self._model, self._mujoco
        of_joint: defaultdict[int, list[int]] = defaultdict(list)
        of_joints = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
        for i, name in enumerate(self._actuator_names):
            is_single = model.actuator_trntype[i] in of_joints and self._is_single(model.actuator_trnid[i, 0])
            if not is_single or not model.actuator_gear[i, 0]:
                self._left_out["actuators that drive no hinge or slide are ignored"].append(name)
                continue
            of_joint[int(model.actuator_trnid[i, 0])].append(i)
            is_dc_motor = self._is_dc_motor(i)
            if not (self._is_motor(i) or (is_dc_motor and model.actuator_ctrlspec[i] == _VOLTAGE)):
                self._assumed["control laws of actuators are not read"].append(name)
            more = (*model.actuator_biasprm[i], model.actuator_dynprm[i, 0], *model.actuator_dynprm[i, 2:])
            if is_dc_motor and np.any(more):
                what = "inductance, heating, cogging and LuGre friction of DC motors are ignored"
                self._left_out[what].append(name)
        return dict(of_joint)

    def _is_motor(self, i: int) -> bool:
        """True if the force of an actuator is its control times a constant."""
        model, mujoco = self._model, self._mujoco
        kinds = (model.actuator_gaintype, model.actuator_biastype, model.actuator_dyntype)
        plain = (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtDyn.mjDYN_NONE)
        return all(kind[i] == int(none) for kind, none in zip(kinds, plain, strict=True))

    def _is_dc_motor(self, i: int) -> bool:
        """True if an actuator is a ``<dcmotor>``, which MuJoCo has since 3.7."""
        kind = getattr(self._mujoco.mjtGain, "mjGAIN_DCMOTOR", None)
        return kind is not None and self._model.actuator_gaintype[i] == int(kind)

    def _largest_force(self, i: int) -> float:
        """Largest force of an actuator, by its range of forces and its range of controls; infinite without limits."""
        model, name = self._model, f"actuator {self._actuator_names[i]}"
        largest = self._symmetric(model.actuator_forcerange[i], name) if model.actuator_forcelimited[i] else np.inf
        control = i if not hasattr(model, "actuator_ctrladr") else int(model.actuator_ctrladr[i])
        if self._is_motor(i) and model.actuator_ctrllimited[control]:
            gain = model.actuator_gainprm[i, 0]
            largest = min(largest, self._symmetric(gain * model.actuator_ctrlrange[control], name))
        return largest

    def _symmetric(self, bounds: Array, name: str) -> float:
        """Smaller magnitude of a range, or the larger if the other is zero."""
        magnitudes = sorted(np.abs(bounds).tolist())
        if magnitudes[0] != magnitudes[1]:
            self._assumed["effort limits are the smaller limits of both directions"].append(name)
        return magnitudes[0] or magnitudes[1] or np.inf

    def _of_actuators(self, name: str, actuators: Sequence[int]) -> Array:
        """Parameter of actuators; zero if this release of MuJoCo does not have it."""
        values = getattr(self._model, name, np.zeros(len(self._actuator_names)))
        return np.asarray(values, dtype=float)[list(actuators)]

    def _read_equalities(self) -> Mapping[int, MimicDescription]:
        """Joints that follow another one by a linear equality; other equalities are named.

        Of two joints, the joint without an actuator follows. The rotor of a follower turns with its leader.
        """
        model, mimics = self._model, dict[int, MimicDescription]()
        for i in np.flatnonzero(model.eq_active0):
            follower, leader, terms = int(model.eq_obj1id[i]), int(model.eq_obj2id[i]), model.eq_data[i, :5]
            kind = self._mujoco.mjtEq(int(model.eq_type[i])).name.removeprefix("mjEQ_").lower()
            linear = kind == "joint" and leader >= 0 and terms[1] and not np.any(terms[2:])
            if not linear or follower in mimics:
                self._left_out["equality constraints are ignored"].append(model.equality(i).name or f"{kind} {i}")
                continue
            start = model.qpos0[model.jnt_qposadr[[follower, leader]]]
            ratio, offset = float(terms[1]), float(start[0] + terms[0] - terms[1] * start[1])
            if follower in self._actuators and leader not in self._actuators and leader not in mimics:
                follower, leader, ratio, offset = leader, follower, 1 / ratio, -offset / ratio
            mimics[follower] = MimicDescription(self._joints[leader], ratio, offset)
            rotor = model.jnt_dofadr[[leader, follower]]
            self._rotors[rotor[0]] += ratio**2 * self._rotors[rotor[1]]
        return mimics

    def _sites(self, links: Container[str]) -> Iterator[FrameDescription]:
        model = self._model
        for i in range(model.nsite):
            site = model.site(i).name
            name = unused_name(f"{site}_site" if site in links else site, self._site_names) if site else ""
            self._site_names.append(name)
            if name:
                pose = _pose(model.site_pos[i], model.site_quat[i])
                yield FrameDescription(name, self._links[model.site_bodyid[i]], pose, f"site {site}")

    def _tools(self, sites: Sequence[FrameDescription]) -> tuple[str, ...]:
        """Members of a tuple ``tools``, as the writer leaves it; else the one site at the ends of the tree."""
        model, mujoco = self._model, self._mujoco
        t = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TUPLE, "tools")
        if t >= 0:
            members = slice(int(model.tuple_adr[t]), int(model.tuple_adr[t]) + int(model.tuple_size[t]))
            names = {int(mujoco.mjtObj.mjOBJ_SITE): self._site_names, int(mujoco.mjtObj.mjOBJ_BODY): self._links}
            elements = zip(model.tuple_objtype[members].tolist(), model.tuple_objid[members].tolist(), strict=True)
            return tuple(names[kind][i] for kind, i in elements if kind in names)
        body_of, moving = model.body_weldid, np.flatnonzero(model.body_jntnum)
        ends = {*body_of[moving].tolist()} - {*body_of[model.body_parentid[moving]].tolist()}
        last = [site.name for site in sites if body_of[self._links.index(site.link)] in ends]
        return tuple(last) if len(last) == 1 else ()

    def _report_ignored_properties(self) -> None:
        """Name effects on bodies and joints that are not read."""
        model = self._model
        nonlinear = {*self._given("jnt_stiffnesspoly"), *self._given("jnt_springyield")}
        nonlinear |= {*model.dof_jntid[self._given("dof_dampingpoly")].tolist()}
        for what, indices, names in (
            ("nonlinear stiffness and damping of joints are ignored", sorted(nonlinear), self._joints),
            ("nonlinear damping of actuators is ignored", self._given("actuator_dampingpoly"), self._actuator_names),
            ("gravity compensation of bodies is ignored", self._given("body_gravcomp"), self._links),
        ):
            if indices:
                self._left_out[what] += [names[i] for i in indices]
        if model.opt.density or model.opt.viscosity:
            self._left_out["the fluid around the bodies is ignored"].append("option density, viscosity")
        for what, count in (("deformable bodies", model.nflex), ("plugins", model.nplugin)):
            if count:
                self._left_out[f"{what} are ignored"].append(f"{count}")
        if shapeless := [self._links[i] for i in sorted(self._shapeless - {0}) if model.body_geomnum[i]]:
            self._assumed["bodies fixed to the world without <inertial> have no inertia"] += shapeless

    def _given(self, name: str) -> list[int]:
        """Indices of nonzero entries of a field of the model; empty if this release of MuJoCo lacks the field."""
        return np.unique(np.nonzero(getattr(self._model, name, ()))[0]).tolist()


def _pose(position: Array, wxyz: Array) -> Array:
    return lie.pose(lie.rotation_from_quaternion(np.roll(wxyz, -1)), position)


def _parallel_spring(stiffness: Any, rest_position: Any) -> ParallelSpring | None:
    return ParallelSpring(SignedLinearLaw(float(stiffness)), float(rest_position)) if stiffness else None


def _lines(names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{what}: {listed(ignored)}" for what, ignored in names.items())
