# SPDX-License-Identifier: Apache-2.0
"""Plugin of inverse_dynamics_solver: its numbers equal the arm's; refusals."""

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from xml.etree import ElementTree

import numpy as np
import pytest
from exported import CPP_STRICT, compile_functions, export, renamed, robot, succeed, with_values

import eom_dynamics.export as code
from eom_dynamics import ElasticArm, Robot, equations_of_motion
from eom_dynamics.actuators import Actuator, Friction
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.export.functions import FRICTION

LANGUAGE, FUNCTIONS = "inverse_dynamics_solver", (code.FEEDFORWARD, FRICTION)

MAIN = """\
#include "src/solver.cpp"
#include <cstdio>
#include <cstdlib>
template <class... Given> void refused(inverse_dynamics_solver::InverseDynamicsSolver &solver, Given... given)
{
    try {
        solver.initialize(given...);
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
    }
}
int main(int count, char **words)
{
    const auto solver = loaded();
    const auto node = std::make_shared<rclcpp::node_interfaces::NodeParametersInterface>();
    auto &side = node->values["ids.side"];
    side.string = words[1];
    const int n = (count - 2) / 3;
    Eigen::VectorXd x[3] = {Eigen::VectorXd(n), Eigen::VectorXd(n), Eigen::VectorXd(n)};
    for (int i = 0; i < 3 * n; ++i)
        x[i / n](i % n) = std::atof(words[i + 2]);
    if (side.string == "refusals") {
        refused(*solver, node, "ids");
        side.string = "joint";
        refused(*solver, node, "ids", "no xml");
        refused(*solver, node, "ids", "<robot name='other'/>");
        node->values["ids.gravity"].numbers = {0, 0, -1};
        refused(*solver, node, "ids");
        for (int k = 0; k < 2; ++k) {
            try {
                solver->getGravityVector(Eigen::VectorXd(1));
            } catch (const std::exception &error) {
                std::puts(error.what());
            }
            solver->initialize();
        }
        return 0;
    }
    solver->initialize(node, "ids");
    auto H = solver->getInertiaMatrix(x[0]);
    std::vector<Eigen::VectorXd> all{solver->getCoriolisVector(x[0], x[1]), solver->getGravityVector(x[0]),
                                     solver->getFrictionVector(x[1]), solver->getTorques(x[0], x[1], x[2])};
    for (double value : H.entries)
        std::printf("%.17g ", value);
    for (const auto &vector : all)
        for (double value : vector.entries)
            std::printf("%.17g ", value);
}
"""


def _rubbing() -> Robot:
    """Parallel springs and constant efforts, with friction of joints."""
    held = robot("held")
    joints = tuple(replace(joint, damping=0.4, friction=0.7) for joint in held.joints)
    return replace(held, name="rubbing", joints=joints, joint_friction=True)


def _carried() -> Robot:
    """Carried rotors, springs that do not deflect, and gears without loss."""
    arm, actuator = robot("carried"), Actuator(Friction(0.8, 0.3, 0.5))
    joints = tuple(replace(joint, spring=LinearSpring(1e12), actuator=actuator) for joint in arm.joints)
    return replace(arm, name="carried", joints=joints)


ARMS = {"rubbing": _rubbing, "carried": _carried, "shared": lambda: robot("shared")}


@cache
def program(name: str) -> tuple[Robot, Path]:
    arm, folder = ARMS[name](), Path(mkdtemp(prefix="eom_dynamics-test-"))
    export(arm, LANGUAGE, folder, FUNCTIONS)
    shutil.copytree(Path(__file__).parents[1] / "helpers/solver_interface", folder / "interface")
    (folder / "main.cpp").write_text(MAIN)
    objects = compile_functions(folder, "-O0")
    succeed(["c++", *CPP_STRICT, "-Iinterface", "-Ic", "main.cpp", *objects, "-lm", "-o", "main"], folder)
    return arm, folder / "main"


@pytest.mark.parametrize("name", ARMS)
def test_numbers_are_those_of_the_arm(name: str) -> None:
    """Links by the closed form, friction by its laws, and rotors by power; motors with springs by the library."""
    subject, main = program(name)
    arm, n = ElasticArm(subject), subject.n
    q, qd, qdd = np.random.default_rng(5).uniform(-0.8, 0.8, (3, n))
    closed = equations_of_motion(subject, q, qd, qdd)
    of_joints = np.zeros(n)
    if subject.joint_friction:
        of_joints += [joint.friction_law.effort(rate) for joint, rate in zip(subject.joints, qd, strict=True)]
    # Velocities of motors that follow rigid links, from joint velocities.
    turned = np.eye(n)[arm.motor_joint]
    if subject.transmission:
        places = np.searchsorted(arm.motor_joint, subject.transmission[0])
        turned[places] = np.linalg.inv(subject.transmission[1].matrix) @ turned[places]
    laws = [arm.side.actuators[joint].friction for joint in arm.motor_joint]
    rotors = turned.T @ np.diag(np.array(arm.side.rotor_inertia)[arm.motor_joint]) @ turned
    moved = arm.feedforward(q, qd, qdd, 0 * q, 0 * q)
    state = [repr(float(x)) for x in (*q, *qd, *qdd)]
    for side, motor in (("joint", 0.0), ("motor", 1.0)):
        found = np.array(succeed([main, side, *state], main.parent).split(), dtype=float)
        H, (C, g, f, torques) = found[: n * n].reshape(n, n), found[n * n :].reshape(4, n)
        friction = of_joints + motor * turned.T @ [
            law.effort(rate) for law, rate in zip(laws, turned @ qd, strict=True)
        ]
        pairs = [(f, friction), (torques, turned.T @ moved.motor_effort if motor else moved.tau)]
        pairs += [(g, equations_of_motion(subject, q, 0 * qd).efforts(0 * qd)[0])]
        if name == "carried":
            # The closed form has no carried rotors; the springs have 1e12 N m/rad.
            np.testing.assert_allclose(H @ qdd + C + g + f, torques, rtol=1e-8)
            pairs += [(H, H.T)] if motor else []
        else:
            pairs += [(H, closed.M[0] + motor * rotors), (C, closed.C[0] @ qd)]
            pairs += [] if motor else [(torques, closed.efforts(qdd)[0] + of_joints)]
        for value, wanted in pairs:
            np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-11, err_msg=side)


def test_refusals_name_parameter_and_value() -> None:
    _, main = program("rubbing")
    assert succeed([main, "refusals"], main.parent).splitlines() == [
        "ids.side: must be motor or joint, is 'refusals'",
        "robot_description: is no URDF",
        "robot_description: has no joint 'joint_1'; this solver belongs to rubbing",
        "ids.gravity: must be [0, -9.80665, 0], a constant of the exported robot, is [0, 0, -1]; leave it out, or "
        "export the robot with this gravity",
        "Solver is not initialized",
        "rubbing_eom_solver: vectors must have an entry for each of 2 joints, not 1",
    ]


@pytest.mark.parametrize("name", ["My <Arm> --2", "class", "@name@", "back\\", '"quoted"'])
def test_package_of_any_name(name: str) -> None:
    files = code.LANGUAGES[LANGUAGE].files(*with_values(renamed(name, 'a "b" \\', "@package@"), FUNCTIONS))
    (plugin,) = ElementTree.fromstring(files["plugins.xml"]).findall("class")
    package = ElementTree.fromstring(files["package.xml"]).findtext("name")
    assert package and re.fullmatch(r"[a-z]\w*_eom_solver", package)
    assert plugin.get("name") == f"{package}/InverseDynamicsSolver"
    solver = files["src/solver.cpp"].decode()
    assert f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})" in solver
    sources = re.findall(r"c/\w+\.c\b", files["CMakeLists.txt"].decode())
    assert sources == sorted(file for file in files if file.endswith(".c")) and len(sources) == 4
