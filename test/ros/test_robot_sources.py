# SPDX-License-Identifier: Apache-2.0
"""Sources of the robot: each of them, their order of precedence, and their faults."""

import itertools
import json
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from chains import flat, packaged_parameters
from hypothesis import given
from hypothesis import strategies as st
from paths import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.robot import robot_from_urdf

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from rclpy.executors import SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.parameter import Parameter

from eom_dynamics.ros import robot_sources
from eom_dynamics.ros.diagnostics import Level, StatusReport
from eom_dynamics.ros.parameter_tables import COMMON, nested
from eom_dynamics.ros.robot_node import RobotNode

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
ARM = urdf_arm("arm")
HEAVY = urdf_arm("heavy", mass=2.5)
PATIENCE = 60.0

_numbers = itertools.count(1)


class RobotProbe(RobotNode):
    """A node with nothing but a robot supply; collects the robots delivered in ``loaded``.

    Attributes:
        robot_wanted: whether arriving robots are loaded.
    """

    arm = None
    robot_wanted = True

    def __init__(self, executor, *arguments):
        self.namespace_of_probe = f"/probe_{next(_numbers)}"
        super().__init__(
            "probe",
            namespace=self.namespace_of_probe,
            allow_undeclared_parameters=True,
            cli_args=["--ros-args", *map(str, arguments)],
            use_global_arguments=False,
        )
        self.loaded = []
        self.declare(COMMON)
        self.complete("probe", SimpleNamespace(interrupting=nullcontext))
        self._spinner = executor
        executor.add_node(self)

    def on_robot(self, loaded):
        self.loaded.append(loaded)

    def report(self, seconds):
        return StatusReport(Level.OK, "", {})

    def spin_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.supply.problem
            self._spinner.spin_once(timeout_sec=0.05)

    def spin(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._spinner.spin_once(timeout_sec=left)


@pytest.fixture(params=["events"])
def probe(ros, request):
    """Make a node with nothing but a robot supply."""
    executor = EventsExecutor() if request.param == "events" else SingleThreadedExecutor()
    probes = []

    def make(*arguments):
        probes.append(RobotProbe(executor, *arguments))
        return probes[-1]

    yield make
    for node in probes:
        executor.remove_node(node)
        node.destroy_node()
    executor.shutdown()


def parameter_file(folder, **parameters):
    path = folder / "more.yaml"
    path.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
    return ("--params-file", path)


def name_of(loaded):
    return loaded.evaluator.arm.robot.name if loaded.evaluator else loaded.error


def arrived(node, name):
    """Wait for a robot of this name to be delivered; returns it."""
    node.spin_until(lambda: node.loaded and name_of(node.loaded[-1]) == name)
    return node.loaded[-1].evaluator.arm.robot


def set_parameters(node, **values):
    return node.set_parameters([Parameter(name.replace("__", "."), value=value) for name, value in values.items()])


# --- Each source ------------------------------------------------------------------------


def test_a_file(probe, tmp_path):
    node = probe("-p", f"robot_file:={CONFIG / 'planar_2r.yaml'}")
    assert (node.supply.source, node.supply.arrives) == (f"robot_file {CONFIG / 'planar_2r.yaml'}", False)
    assert name_of(node.supply.load()) == "planar_2r"
    xacro = tmp_path / "arm.xacro"
    for file in (tmp_path / "arm.urdf", tmp_path / "arm.xml", xacro):
        file.write_text(ARM)
        node = probe(*parameter_file(tmp_path, robot_file=str(file), urdf=SPRINGS))
        assert_same(node.supply.load().evaluator.arm.robot, robot_from_urdf(ARM, SPRINGS))
    beside = probe("-p", "robot_file:=planar_2r", "-p", "robot.nam:=arm").supply.load()
    assert beside.error.endswith("; the robot is from robot.nam; without effect: robot_file")
    # It is read again at each loading.
    xacro.write_text(HEAVY)
    assert name_of(node.supply.load()) == "heavy"


def test_another_node_that_starts_later(probe, other):
    """Its section robot comes before its description; a relative name of it is in the node's namespace."""
    node = probe("-p", "robot_source_node:=rsp")
    name = f"{node.namespace_of_probe}/rsp"
    assert node.supply.source == f"parameters of node {name}"
    node.spin_until(lambda: node.supply.problem == "there is no such node, or it has no parameter services")
    section = flat(packaged_parameters("planar_2r"), "robot.")
    other("rsp", namespace=node.namespace_of_probe, **section, robot_description=ARM, use_tf_static=True)
    arrived(node, "planar_2r")
    assert node.supply.problem == ""


def test_the_file_of_another_node(probe, other, tmp_path):
    """No program is run for it, a xacro file."""
    xacro_files(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    remote, _ = other("rsp", robot_file="arm.urdf", robot_description=HEAVY)
    node = probe("-p", "robot_source_node:=/rsp")
    node.spin_until(
        lambda: node.supply.problem == "its robot_file must be an absolute path or package://…, is 'arm.urdf'"
    )
    remote.set_parameters([Parameter("robot_file", value="/elsewhere/arm.urdf")])
    node.spin_until(lambda: "'/elsewhere/arm.urdf' is not on this machine" in node.supply.problem)
    remote.set_parameters([Parameter("robot_file", value=str(tmp_path / "arm.xacro"))])
    node.spin_until(lambda: node.loaded)
    assert NOT_EXPANDED in node.loaded[0].error
    for file, name in ((str(tmp_path / "arm.urdf"), "arm"), ("planar_2r", "planar_2r")):
        remote.set_parameters([Parameter("robot_file", value=file)])
        arrived(node, name)


def test_springs_and_prefix_of_another_node_are_taken_unless_the_node_has_its_own(probe, other):
    spring = "urdf.joints.shoulder.elasticity"
    other("rsp", **{f"{spring}.type": "linear", f"{spring}.stiffness": 70.0}, robot_description=ARM, joint_prefix="l_")
    joint = arrived(probe("-p", "robot_source_node:=/rsp"), "arm").joints[0]
    assert (joint.name, joint.spring.rest_stiffness) == ("l_shoulder", 70.0)
    own = ("-p", f"{spring}.type:=linear", "-p", f"{spring}.stiffness:=90.0", "-p", "joint_prefix:=r_")
    joint = arrived(probe("-p", "robot_source_node:=/rsp", *own), "arm").joints[0]
    assert (joint.name, joint.spring.rest_stiffness) == ("r_shoulder", 90.0)


NOT_EXPANDED = "is a xacro file, a program: only a node that is started with it expands it"


def xacro_files(folder):
    (folder / "arm.xacro").write_text(ARM)
    robot = {"robot": {"urdf": "arm.xacro"}}
    (folder / "arm.yaml").write_text(json.dumps({"/**": {"ros__parameters": robot}}))


def test_nobody_on_the_network_chooses_a_program(probe, tmp_path):
    """Paths of xacro files, and their arguments, are fixed at the start of the node."""
    pytest.importorskip("xacro")
    xacro_files(tmp_path)
    node = probe()
    for name in ("robot_file", "robot__urdf", "robot__xacro_arguments__side"):
        (answer,) = set_parameters(node, **{name: str(tmp_path / "arm.xacro")})
        assert not answer.successful and "set it when the node is started" in answer.reason, name
    (answer,) = set_parameters(node, robot_file=str(tmp_path / "arm.yaml"))
    assert answer.successful and NOT_EXPANDED in node.supply.load().error
    own = parameter_file(tmp_path, robot={"urdf": str(tmp_path / "arm.xacro"), "joints": {"elbow": {"damping": 0.5}}})
    assert probe(*own).supply.load().evaluator.arm.robot.joints[1].damping == 0.5
    # Another file, and the first file again.
    node = probe("-p", f"robot_file:={tmp_path / 'arm.xacro'}")
    set_parameters(node, robot_file=str(CONFIG / "planar_2r.yaml"))
    assert name_of(node.supply.load()) == "planar_2r"
    set_parameters(node, robot_file=str(tmp_path / "arm.xacro"))
    assert name_of(node.supply.load()) == "arm"


# --- Precedence -------------------------------------------------------------------------


def test_a_source_that_is_closer_comes_first(probe, other, describe, tmp_path):
    describe(HEAVY)
    other("rsp", robot_description=HEAVY)
    every = {"robot_description": ARM, "robot_source_node": "/rsp"}
    topic = ("-r", f"robot_description:={describe.topic}")
    node = probe(*IIWA, *parameter_file(tmp_path, **every), *topic)
    assert (node.supply.source, node.supply.arrives) == ("parameters robot.*", False)
    loaded = node.supply.load()
    assert name_of(loaded) == "iiwa" and node.supply.load() is loaded
    node = probe(*parameter_file(tmp_path, **every), *topic)
    assert (node.supply.source, name_of(node.supply.load())) == ("parameter robot_description", "arm")
    assert name_of(probe("-p", f"robot_file:={CONFIG / 'planar_2r.yaml'}", *topic).supply.load()) == "planar_2r"
    assert probe("-p", "robot_source_node:=/rsp", *topic).supply.source == "parameters of node /rsp"
    # A robot that cannot be used is an error, and does not give way to the next source.
    bad = probe(*parameter_file(tmp_path, robot_description="<robot/>"), *topic)
    assert bad.supply.load().error.startswith("robot_description: line 1: ")
    reasons = {"/nowhere.urdf": "cannot be read: No such file or directory", "/": "is a folder; "}
    for file, reason in reasons.items():
        loaded = probe("-p", f"robot_file:={file}", *topic).supply.load()
        assert loaded.evaluator is None and loaded.error.startswith(f"{file}: {reason}")


def test_the_source_can_be_chosen_anew(probe, other, describe):
    describe(ARM)
    node = probe(*IIWA, "-r", f"robot_description:={describe.topic}")
    set_parameters(node, **dict.fromkeys(name.replace(".", "__") for name in node._parameters if "robot." in name))
    assert node.supply.source == f"topic {describe.topic}"
    arrived(node, "arm")
    other("rsp", robot_description=HEAVY)
    set_parameters(node, robot_source_node="/rsp")
    arrived(node, "heavy")


# --- Another node that does not answer as it should --------------------------------------


@pytest.mark.parametrize(
    ("mode", "parameters", "reason"),
    [
        ("silent", {}, "it does not answer"),
        ("too_few_values", {}, "it answered 0 values to a request for 1"),
        ("no_such_type", {}, "its answer cannot be read: unexpected parameter type 99"),
        ("parameters", {"speed": 1.0}, "it has neither robot_description nor parameters robot.*"),
        ("parameters", {"robot_description": 5}, "its robot_description must be a text, is 5"),
        ("parameters", {"robot_description": ""}, "its robot_description is empty; if it has its robot from a topic,"),
    ],
)
def test_another_node_without_a_robot_is_asked_until_it_has_one(probe, other, monkeypatch, mode, parameters, reason):
    monkeypatch.setattr(robot_sources, "ROBOT_TIMEOUT", 0.5)
    _, end = other("rsp", mode, **parameters)
    node = probe("-p", "robot_source_node:=/rsp")
    node.spin_until(lambda: node.supply.problem.startswith(reason))
    assert node.supply.load() is None
    end()
    other("rsp", robot_description=ARM)
    arrived(node, "arm")


def test_a_bad_robot_of_another_node_is_delivered_once_and_can_be_corrected_there(probe, other):
    remote, _ = other("rsp", robot_description=ARM.replace('mass value="1.0"', 'mass value="nan"'))
    node = probe("-p", "robot_source_node:=/rsp")
    node.spin_until(lambda: node.loaded)
    assert node.loaded[0].error.startswith("robot_description of node /rsp: line 1: ")
    node.spin(0.5)  # the node requests it again
    assert len(node.loaded) == 1
    remote.set_parameters([Parameter("robot_description", value=ARM)])
    arrived(node, "arm")


def test_an_internal_error_is_reported_with_its_traceback(probe, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("eom_dynamics.ros.robot_sources.SetpointEvaluator", fail)
    loaded = probe(*parameter_file(tmp_path, robot_description=ARM)).supply.load()
    assert (loaded.evaluator, loaded.error) == (None, "internal error: ZeroDivisionError: on purpose")
    assert loaded.detail.startswith("Traceback")


# --- Robots that nobody wants now -------------------------------------------------------


def test_a_robot_is_loaded_only_where_it_is_wanted(probe, describe):
    describe(ARM)
    node = probe("-r", f"robot_description:={describe.topic}")
    node.robot_wanted = False
    node.spin_until(lambda: node.supply.problem == "")
    node.spin(0.3)
    assert not node.loaded
    assert name_of(node.supply.load()) == "arm"
    node.robot_wanted = True
    describe(HEAVY)
    arrived(node, "heavy")


def test_paused_it_asks_no_more(probe, other):
    remote, _ = other("rsp", robot_description=ARM)
    node = probe("-p", "robot_source_node:=/rsp")
    arrived(node, "arm")
    node.supply.pause()
    node.spin(0.5)  # an answer may be on its way
    remote.set_parameters([Parameter("robot_description", value=HEAVY)])
    node.spin(0.5)
    assert len(node.loaded) == 1
    node.supply.resume()
    arrived(node, "heavy")


# --- Additions of parameters to a URDF ------------------------------------------------------

SPRINGS = {
    "joints": {
        "shoulder": {"elasticity": {"type": "linear", "stiffness": 800.0}, "rotor_inertia": 0.3},
        "elbow": {"rotor_inertia": 0.1},
    },
    "gravity": [0.0, -3.0, -9.0],
}


def assert_same(robot, wanted):
    state = np.random.default_rng(7).normal(size=(5, wanted.n))
    for got, value in zip(
        eom.ElasticArm(robot).feedforward(*state), eom.ElasticArm(wanted).feedforward(*state), strict=True
    ):
        np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("probe", ["events", "single_threaded"], indirect=True)
def test_the_topic_published_before_and_after_with_springs_and_gravity(probe, describe, tmp_path):
    describe(ARM)
    springs = parameter_file(tmp_path, urdf=SPRINGS)
    node = probe(*springs, "-r", f"robot_description:={describe.topic}")
    assert node.supply.source == f"topic {describe.topic}"
    assert_same(arrived(node, "arm"), robot_from_urdf(ARM, SPRINGS))
    describe(HEAVY)
    assert_same(arrived(node, "heavy"), robot_from_urdf(HEAVY, SPRINGS))
    later = probe()
    assert later.supply.problem == "nothing has been published on it yet"
    assert later.supply.load() is None


# --- A node that waits ------------------------------------------------------------------


def assert_computes(client, robot):
    """The node answers setpoints, motor side and all, as the library does for this robot."""
    state = np.random.default_rng(7).normal(size=(5, robot.n))
    feedforward, _, _ = client.answers_to(client.publish(state, joint_names=list(robot.joint_names)))
    for name, values in zip(COMMAND_FIELDS, eom.ElasticArm(robot).feedforward(*state), strict=True):
        np.testing.assert_allclose(getattr(feedforward, name), values, rtol=0, atol=1e-12 * np.abs(values).max())


def test_the_node_waits_for_the_topic_and_brings_itself_up(start, describe):
    client = start("-r", f"robot_description:={describe.topic}", {"robot_sources.ROBOT_TIMEOUT": 2.0})
    wanted = f"waiting for the robot from topic {describe.topic}: nothing has been published on it yet"
    client.wait_for_diagnostics(lambda level, message, _: level == 1 and message == wanted, "a warning at first")
    client.wait_for_diagnostics(lambda level, message, _: level == 2 and message == wanted, "an error when overdue")
    answer = client.inverse_dynamics(position=np.zeros(2), velocity=np.zeros(2), acceleration=np.zeros(2))
    assert (answer.success, answer.message) == (False, "the node is unconfigured; it answers only when active")
    assert "[ERROR]" not in client.process.log
    describe("<robot/>")
    client.wait_for_diagnostics(lambda *s: s[0] == 2 and s[1].startswith("robot not loaded: topic"), "the refusal")
    describe(ARM)
    client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "arm" and s[2]["state"] == "active", "the robot")
    assert client.next_diagnostics()[:2] == (0, "waiting for setpoints")
    assert_computes(client, eom.load_robot(ARM))
    assert client.process.log.count("robot not loaded") == 1
    # After a cleanup it is the manager that configures.
    assert client.transition("deactivate") and client.transition("cleanup")
    describe(HEAVY)
    client.spin(0.5)
    assert client.state == "unconfigured"
    assert client.transition("configure") and client.transition("activate")
    assert_computes(client, eom.load_robot(HEAVY))


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("from eom_dynamics.control import library\nlibrary.NAME = 'none.so'\n", "the control loop is not built; "),
        ("os.environ['CC'] = '/nonexistent'\n", "no C compiler found (CC=/nonexistent); install gcc, or copy "),
    ],
    ids=["loop", "CC"],
)
def test_without_what_is_compiled_the_node_stays_unconfigured(start, tmp_path, missing, reason):
    """It has a remedy; nothing is computed in another way."""
    cache = f"import os\nos.environ['EOM_DYNAMICS_CACHE'] = {str(tmp_path / 'cache')!r}\n"
    client = start("-p", "robot_file:=planar_2r", patch=cache + missing)
    client.wait(lambda: f"robot not loaded: {reason}" in client.process.log, "the error")
    assert "the node stays unconfigured: correct it and configure again" in client.process.log
    level, text = client.next_diagnostics()[:2]
    assert level == 2 and text.startswith(f"robot not loaded: {reason}")
    assert client.state == "unconfigured" and not client.transition("configure")


def test_a_node_with_the_results_of_compilers_needs_none(start):
    assert_computes(start("-p", "robot_file:=planar_2r"), eom.load_robot("planar_2r"))
    missing = "import os\nos.environ |= dict.fromkeys(('CC', 'CXX'), '/nonexistent')\n"
    assert_computes(start("-p", "robot_file:=planar_2r", patch=missing), eom.load_robot("planar_2r"))


# --- Names of parameters with dots ------------------------------------------------------

names = st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1, max_size=4)
trees = st.dictionaries(
    names,
    st.recursive(
        st.integers(), lambda children: st.dictionaries(names, children, min_size=1, max_size=3), max_leaves=8
    ),
    max_size=4,
)


@given(trees, st.randoms())
def test_nested_is_the_inverse_of_flat_in_any_order(tree, random):
    items = list(flat(tree).items())
    random.shuffle(items)
    assert nested(dict(items), "robot", "parameters") == tree


def test_a_name_that_is_value_and_section_is_refused():
    for section in ("joints.a.mass", "joints.a.origin.xyz"):
        reason = rf"^/x: urdf\.joints\.a is a value, and has urdf\.{section} below it"
        with pytest.raises(eom.RobotDescriptionError, match=reason):
            nested({section: 1.0, "joints.a": 2.0}, "urdf", "/x")
