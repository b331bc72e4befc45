# SPDX-License-Identifier: Apache-2.0
"""Export as a ROS 2 package for ros2_control: a chainable controller, and a simulated robot.

The controller is a thin class around the headers of the C++ export; both have their tests in the package.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from .. import __version__
from ..arrays import Array
from ..codegen.emit_c import filled
from ..robot.writers.written import unused
from . import cpp_project
from .c_text import stored_arrays
from .cpp_robot import comment, type_name
from .motors import MOTOR_NAMES, MotorFeedforward
from .project import Project, UnavailableError, plain
from .stored_values import StoredValues
from .templates import template

# Natural frequency, rad/s, of the motors under the PD of the example, critically damped, as in simulations.
_FREQUENCY = 70.0

# Characters that XML cannot have, not even escaped.
_NOT_XML = "[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"

_MOCK = ["<plugin>mock_components/GenericSystem</plugin>"]
_SIMULATED = ["<plugin>{package}/PlantSystem</plugin>", '<param name="rate">10000</param>']


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the package by path.

    Raises:
        UnavailableError: the project has no motor feedforward, single precision, or a name that XML cannot have.
    """
    feedforward = cpp_project.require_feedforward(project, "ros2_control")
    if project.precision != "double":
        raise UnavailableError("ros2_control has double precision only")
    cpp_project.require_names(project, "ros2_control", _NOT_XML)
    package = package_name(project)
    library = _library(project, stored)
    fields = {
        "notice": comment(project),
        "comment": "\n".join(f"# {line}".rstrip() for line in project.notice()),
        "package": package,
        "library": project.library,
        "name": project.name,
        "type": type_name(project),
    }
    texts = _package(project, fields, library)
    texts |= _sources(project, feedforward, stored, fields)
    texts |= _examples(project, feedforward, fields)
    return library | {name: text.encode("ascii") for name, text in texts.items()}


def package_name(project: Project) -> str:
    """Name of the package: that of the robot in lower case."""
    return f"{project.name.lower()}_control"


def _library(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Headers and tests of the C++ export, and C for one state."""
    contents = cpp_project.files(project, stored)
    skipped = re.compile(rf"CMakeLists|_batch\.c$|^c/test_{project.library}\.c$")
    return {name: content for name, content in contents.items() if not skipped.search(name)}


def _package(project: Project, fields: dict[str, str], library: dict[str, bytes]) -> dict[str, str]:
    """Description of the package and its plugins, and README."""
    simulated = bool(project.plant)
    title = plain(project.robot.name)
    escaped = quoteattr(title)[1:-1].replace("--", "- -")
    plugins = ["feedforward_controller", *(["plant_system"] if simulated else [])]
    hardware = "pluginlib_export_plugin_description_file(hardware_interface hardware.xml)" if simulated else ""
    texts = {
        "package.xml": filled(template("ros2_control/package.xml.in"), title=escaped, version=_version(), **fields),
        "controllers.xml": filled(template("ros2_control/controllers.xml.in"), title=escaped, **fields),
        "CMakeLists.txt": filled(
            template("ros2_control/CMakeLists.txt.in"),
            sources="\n".join(f"  {name}" for name in sorted(library) if name.endswith(".c")),
            plugins=" ".join(f"src/{name}.cpp" for name in plugins),
            export_hardware=hardware,
            descriptions="controllers.xml" + (" hardware.xml" if simulated else ""),
            **(fields | {"notice": fields["comment"]}),
        ),
        "README.md": filled(
            template("ros2_control/README.md.in"),
            title=title,
            indented_notice="\n".join(f"    {line}".rstrip() for line in project.notice()),
            hardware_list=(
                "the simulated robot, or with `hardware:=mock` components that only store commands"
                if simulated
                else "components that only store commands"
            ),
            stiffness_references=", `stiffness`, `stiffness_rate`, `stiffness_acceleration`"
            if project.feedforward and "k" in project.feedforward.inputs
            else "",
            **fields,
        ),
    }
    if simulated:
        texts["hardware.xml"] = filled(template("ros2_control/hardware.xml.in"), title=escaped, **fields)
    return texts


def _version() -> str:
    """Version in the three numbers of a ROS package."""
    numbers = re.findall(r"\d+", __version__)[:3]
    return ".".join([*numbers, "0", "0"][:3])


def _sources(
    project: Project, feedforward: MotorFeedforward, stored: StoredValues, fields: dict[str, str]
) -> dict[str, str]:
    """Sources of the plugins, and the test of the controller."""
    package = fields["package"]
    texts = {}
    for name in ("feedforward_controller", *(["plant_system"] if project.plant else [])):
        guard = f"{package}_{name}_hpp".upper()
        texts[f"include/{package}/{name}.hpp"] = filled(template(f"ros2_control/{name}.hpp.in"), guard=guard, **fields)
        texts[f"src/{name}.cpp"] = filled(template(f"ros2_control/{name}.cpp.in"), **fields)
    commanded = [name for name in ("k", "kd", "kdd") if name in feedforward.inputs]
    messages = dict(zip(commanded, ("stiffness", "stiffness_rate", "stiffness_acceleration"), strict=False))
    # Deflections of dampers are a state, with which the stored motion of motors does not agree.
    alone = "deflection" not in feedforward.inputs
    compared = {"motor_effort": "i", "motor_position": "Robot::motors + i", "motor_velocity": "2 * Robot::motors + i"}
    texts["test/test_controller.cpp"] = filled(
        template("ros2_control/test_controller.cpp.in"),
        states=str(stored.count),
        tolerance=repr(stored.relative_tolerance),
        stored=stored_arrays(stored, [*feedforward.inputs, "tau", "taud", "taudd", *MOTOR_NAMES]),
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


def _examples(project: Project, feedforward: MotorFeedforward, fields: dict[str, str]) -> dict[str, str]:
    """Configuration of a controller manager, descriptions of the hardware, and a launch file."""
    joints = list(project.robot.joint_names)
    motors: list[str] = []
    for name in feedforward.motor_names:
        motors.append(unused(f"{name}_motor", [*joints, *motors]))
    kp, kd = feedforward.inertia * _FREQUENCY**2, 2 * _FREQUENCY * feedforward.inertia
    hardware = {"mock": _MOCK}
    if project.plant:
        hardware = {"simulated": [line.format(**fields) for line in _SIMULATED]} | hardware
    texts = {
        "config/controllers.yaml": filled(
            template("ros2_control/controllers.yaml.in"),
            joints=", ".join(map(_quoted, joints)),
            motors=", ".join(map(_quoted, motors)),
            kp=_numbers(kp),
            kd=_numbers(kd),
            **fields,
        ),
        "launch/control.launch.py": filled(
            template("ros2_control/control.launch.py.in"),
            default_hardware=next(iter(hardware)),
            hardware_choices=", ".join(f'"{name}"' for name in hardware),
            **fields,
        ),
    }
    for name, lines in hardware.items():
        texts[f"description/{name}.urdf"] = _description(project, joints, motors, feedforward, lines)
    return texts


def _description(
    project: Project, joints: Sequence[str], motors: Sequence[str], feedforward: MotorFeedforward, hardware: list[str]
) -> str:
    types = [joint.type for joint in project.robot.independent_joints]
    types += [types[joint] for joint in feedforward.motor_joint]
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
        commands = ["effort"] if k < len(joints) else ["effort", "position", "velocity"]
        interfaces += [
            f"    <joint name={_attribute(name)}>",
            *(f'      <command_interface name="{each}"/>' for each in commands),
            *(
                f'      <state_interface name="{each}"><param name="initial_value">0.0</param></state_interface>'
                for each in ("position", "velocity")
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
