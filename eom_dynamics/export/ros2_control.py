# SPDX-License-Identifier: Apache-2.0
"""Export as a ROS 2 package for ros2_control: a chainable controller, and a simulated robot.

The controller is a thin class around the headers of the C++ export; both have their tests in the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from .. import __version__
from ..arrays import Array
from ..codegen.emit_c import filled
from ..elastic.motor_programs import DEFLECTION, MOTOR_NAMES, STIFFNESS_NAMES
from ..spelling import unused_name
from ..states import EFFORT_NAMES
from . import c_project, cpp_project
from .c_text import constant_arrays
from .cpp_robot import comment, type_name
from .functions import DRIVE_COMMAND, FEEDFORWARD, PLANT
from .project import Project, plain
from .stored_values import StoredValues
from .templates import template

# Natural frequency, rad/s, of the motors under the PD of the example, critically damped, as in simulations.
_FREQUENCY = 70.0

_MOCK = ["<plugin>mock_components/GenericSystem</plugin>"]
_SIMULATED = [
    "<plugin>{package}/PlantSystem</plugin>",
    '<param name="rate">10000</param>',
    '<param name="motor_kp">{kp}</param>',
    '<param name="motor_kd">{kd}</param>',
]


def files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the package by path, for a project with the motor feedforward."""
    package = package_name(project)
    library = {f"c/{name}": text for name, text in c_project.sources(project).items()}
    library |= cpp_project.headers_and_tests(project, stored)
    fields = {
        "notice": comment(project),
        "comment": project.notice_as("# "),
        "package": package,
        "library": project.library,
        "name": project.name,
        "type": type_name(project),
    }
    sources = sorted(name for name in library if name.endswith(".c"))
    return library | _package(project, fields, sources) | _sources(project, stored, fields) | _examples(project, fields)


def can_be_written(name: str) -> bool:
    """Whether XML can contain a name; some characters are invalid even if escaped."""
    return all(x in "\t\n\r" or " " <= x <= "\ud7ff" or "\ue000" <= x <= "\ufffd" or x >= "\U00010000" for x in name)


def package_name(project: Project) -> str:
    """Name of the package: the robot's name in lower case."""
    return f"{project.name.lower()}_control"


def _package(project: Project, fields: dict[str, str], sources: Sequence[str]) -> dict[str, str]:
    """Description of the package and its plugins, and README."""
    simulated = PLANT in project.functions
    title = plain(project.robot.name)
    escaped = quoteattr(title)[1:-1].replace("--", "- -")
    plugins = ["feedforward_controller", *(["plant_system"] if simulated else [])]
    hardware = "pluginlib_export_plugin_description_file(hardware_interface hardware.xml)" if simulated else ""
    texts = {
        "package.xml": filled(template("ros2_control/package.xml.in"), title=escaped, version=_version(), **fields),
        "controllers.xml": filled(template("ros2_control/controllers.xml.in"), title=escaped, **fields),
        "CMakeLists.txt": filled(
            template("ros2_control/CMakeLists.txt.in"),
            sources="\n".join(f"  {name}" for name in sources),
            plugins=" ".join(f"src/{name}.cpp" for name in plugins),
            export_hardware=hardware,
            descriptions="controllers.xml" + (" hardware.xml" if simulated else ""),
            **(fields | {"notice": fields["comment"]}),
        ),
        "README.md": filled(
            template("ros2_control/README.md.in"),
            title=title,
            indented_notice=project.notice_as("    "),
            hardware_list=(
                "the simulated robot, or with `hardware:=mock` components that only store commands"
                if simulated
                else "components that only store commands"
            ),
            stiffness_references=", `stiffness`, `stiffness_rate`, `stiffness_acceleration`"
            if project.side.variable.any()
            else "",
            **fields,
        ),
    }
    if simulated:
        texts["hardware.xml"] = filled(template("ros2_control/hardware.xml.in"), title=escaped, **fields)
    return texts


def _version() -> str:
    """Version in the three numbers of a ROS package."""
    return ".".join(__version__.split(".")[:3])


def _sources(project: Project, stored: StoredValues, fields: dict[str, str]) -> dict[str, str]:
    """Sources of the plugins, and the test of the controller."""
    package = fields["package"]
    texts = {
        "src/feedforward_controller_parameters.yaml": filled(
            template("ros2_control/feedforward_controller_parameters.yaml.in"),
            **cpp_project.LOOP_DEFAULTS,
            **fields,
        )
    }
    for name in ("feedforward_controller", *(["plant_system"] if PLANT in project.functions else [])):
        guard = f"{package}_{name}_hpp".upper()
        texts[f"include/{package}/{name}.hpp"] = filled(template(f"ros2_control/{name}.hpp.in"), guard=guard, **fields)
        texts[f"src/{name}.cpp"] = filled(template(f"ros2_control/{name}.cpp.in"), **fields)
    feedforward = project.functions[FEEDFORWARD]
    commanded = [name for name in STIFFNESS_NAMES if name in feedforward.inputs]
    messages = dict(zip(commanded, ("stiffness", "stiffness_rate", "stiffness_acceleration"), strict=False))
    # Deflections of dampers are a state, with which the stored motion of motors does not agree; nor does what is sent
    # to drives with units of their own.
    alone = DEFLECTION not in feedforward.inputs and DRIVE_COMMAND not in project.functions
    arrays = {name: stored.inputs[name] for name in feedforward.inputs} | dict(stored.outputs[FEEDFORWARD])
    used = (*feedforward.inputs, *EFFORT_NAMES, *MOTOR_NAMES)
    compared = {"motor_effort": "i", "motor_position": "Robot::motors + i", "motor_velocity": "2 * Robot::motors + i"}
    texts["test/test_controller.cpp"] = filled(
        template("ros2_control/test_controller.cpp.in"),
        states=str(stored.count),
        tolerance=repr(stored.relative_tolerance),
        stored=constant_arrays({name: x for name, x in arrays.items() if name in used}, rows="STATES"),
        stiffness="".join(
            f"            message.{field}.push_back(stored_{name}[state][i]);\n" for name, field in messages.items()
        ),
        motors="".join(
            f"        EXPECT_CLOSE([this](std::size_t i) {{ return command({index}); }}, stored_{name}[state], "
            "Robot::motors);\n"
            for name, index in compared.items()
            if alone
        ),
        **fields,
    )
    return texts


def _examples(project: Project, fields: dict[str, str]) -> dict[str, str]:
    """Configuration of a controller manager, descriptions of the hardware, and a launch file."""
    joints = list(project.robot.joint_names)
    motors: list[str] = []
    for name in project.side.motor_names:
        motors.append(unused_name(f"{name}_motor", [*joints, *motors]))
    inertia = np.array(project.side.rotor_inertia)[project.side.motor_joint]
    gains = {"kp": _numbers(inertia * _FREQUENCY**2), "kd": _numbers(2 * _FREQUENCY * inertia)}
    hardware = {"mock": _MOCK}
    if PLANT in project.functions:
        hardware = {"simulated": [line.format(**fields, **gains) for line in _SIMULATED]} | hardware
    texts = {
        "config/controllers.yaml": filled(
            template("ros2_control/controllers.yaml.in"),
            joints=", ".join(map(_quoted, joints)),
            motors=", ".join(map(_quoted, motors)),
            references=", ".join(_quoted(f"feedforward_controller/{name}") for name in joints),
            **gains,
            **fields,
        ),
        "config/moveit_controllers.yaml": filled(
            template("ros2_control/moveit_controllers.yaml.in"), joints=", ".join(map(_quoted, joints)), **fields
        ),
        "launch/control.launch.py": filled(
            template("ros2_control/control.launch.py.in"),
            default_hardware=next(iter(hardware)),
            hardware_choices=", ".join(f'"{name}"' for name in hardware),
            **fields,
        ),
    }
    for name, lines in hardware.items():
        texts[f"description/{name}.urdf"] = _description(project, joints, motors, lines)
    return texts


def _description(project: Project, joints: Sequence[str], motors: Sequence[str], hardware: list[str]) -> str:
    types = [joint.type for joint in project.robot.independent_joints]
    types += [types[joint] for joint in project.side.motor_joint]
    bodies, interfaces = [], []
    for k, (name, kind) in enumerate(zip([*joints, *motors], types, strict=True)):
        limits = '<limit lower="-1e6" upper="1e6" effort="1e9" velocity="1e9"/>'
        slides = kind == "prismatic"
        bodies += [
            f'  <link name="body_{k}"/>',
            f'  <joint name={_attribute(name)} type="{"prismatic" if slides else "continuous"}">',
            f'    <parent link="base"/><child link="body_{k}"/><axis xyz="0 0 1"/>{limits if slides else ""}',
            "  </joint>",
        ]
        commands, states = ["effort"], ["position", "velocity"]
        if k >= len(joints):
            commands, states = commands + states, states + commands
        interfaces += [
            f"    <joint name={_attribute(name)}>",
            *(f'      <command_interface name="{each}"/>' for each in commands),
            *(
                f'      <state_interface name="{each}"><param name="initial_value">0.0</param></state_interface>'
                for each in states
            ),
            "    </joint>",
        ]
    return filled(
        template("ros2_control/robot.urdf.in"),
        title=plain(project.robot.name).replace("--", "- -"),
        robot_name=_attribute(project.name),
        joints="\n".join(bodies),
        hardware="\n".join(f"      {line}" for line in hardware),
        interfaces="\n".join(interfaces),
    )


def _attribute(name: str) -> str:
    """A name as a quoted XML attribute in ASCII."""
    return quoteattr(name).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _quoted(name: str) -> str:
    """A name as a quoted scalar of YAML in ASCII. That of JSON has surrogate pairs, which YAML refuses."""
    plain_ones = {*range(32, 127)} - {ord(x) for x in '"\\'}
    return '"' + "".join(x if ord(x) in plain_ones else f"\\U{ord(x):08x}" for x in name) + '"'


def _numbers(values: Array) -> str:
    return ", ".join(repr(float(f"{x:.6g}")) for x in values)
