# SPDX-License-Identifier: Apache-2.0
"""Goals of FollowJointTrajectory for one arm, sent to joint_trajectory_controller and to dynamics_node alike.

A case is a function of a :class:`Follower` at home, which sends goals and returns the outcome of each: ``rejected``, or
the status and error code of its result, and the final position of the arm.
"""

import json
import time
from functools import partial

import numpy as np
from node_client import StreamClient, joint_trajectory
from paths import ROOT

NAMES = [f"fer_joint{k}" for k in range(1, 8)]
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
NEAR, FAR = HOME + 0.1, HOME + 0.3
PLACES = {"home": HOME, "near": NEAR, "far": FAR}

_STATUS = {4: "succeeded", 5: "canceled", 6: "aborted"}

_PATIENCE = 20.0

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class FollowedArm(StreamClient):
    """Client of a dynamics node, whose motor setpoints come back as joint states."""

    takes_events = False

    def _connect(self):
        from sensor_msgs.msg import JointState

        self._states = self.node.create_publisher(JointState, "joint_states", 10)
        self._state = JointState(name=NAMES, position=HOME.tolist(), velocity=[0.0] * len(NAMES))
        self.node.create_subscription(JointState, "motor_setpoint", self._keep, 10)
        self.node.create_timer(0.004, lambda: self._states.publish(self._state))
        super()._connect()

    def _keep(self, message):
        self._state = type(message)(name=message.name, position=message.position, velocity=message.velocity)


class Follower:
    """Client of the action of a controller: ``node`` in an executor, ``states`` by name of the joints.

    Attributes:
        accepted: times from sending to the answer, s.
        process: process of the controller, if its log belongs to errors.
    """

    process = None

    def __init__(self, node, executor, action):
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionClient
        from sensor_msgs.msg import JointState

        self.kind, self.node, self._executor = FollowJointTrajectory, node, executor
        self.client = ActionClient(node, FollowJointTrajectory, action)
        self.position, self.accepted, self._count = np.full(7, np.nan), [], 0
        node.create_subscription(JointState, "joint_states", self._take, 10)
        self.wait(self.client.server_is_ready)
        self.wait(lambda: np.isfinite(self.position).all())

    def _take(self, state):
        if set(NAMES) <= {*state.name}:
            self.position = np.array(state.position)[[state.name.index(name) for name in NAMES]]
            self._count += 1

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def wait(self, condition):
        end = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"nothing for {_PATIENCE:g} s\n{self.process and self.process.log}")
            self._executor.spin_once(timeout_sec=0.05)

    def goal(self, times=(0.5,), positions=(NEAR,), *, stamp=None, names=NAMES, **rows):
        """A goal; ``stamp`` is in s from now; ``rows`` are fields of its points."""
        goal = self.kind.Goal(trajectory=joint_trajectory(names, times, positions, **rows))
        if stamp is not None:
            at = self.node.get_clock().now().nanoseconds + round(stamp * 1e9)
            goal.trajectory.header.stamp.sec, goal.trajectory.header.stamp.nanosec = divmod(at, 10**9)
        return goal

    def send(self, goal):
        """Send a goal; return a function that waits for its outcome."""
        begin = time.monotonic()
        future = self.client.send_goal_async(goal)
        self.wait(future.done)
        handle = future.result()
        self.accepted.append((handle.accepted, time.monotonic() - begin))
        return Sent(self, handle)

    def ask(self, *arguments, **options):
        return self.send(self.goal(*arguments, **options)).end()

    def place(self):
        """Position of the arm at rest."""
        last = np.full(7, np.inf)
        self.spin(0.1)
        while np.max(np.abs(self.position - last)) > 1e-6:
            last, count = self.position, self._count
            self.wait(lambda count=count: self._count > count + 20)
        for name, q in PLACES.items():
            if np.max(np.abs(last - q)) < 5e-3:
                return name
        return "elsewhere"

    def go_home(self):
        away = np.max(np.abs(self.position - HOME))
        if away > 1e-6:
            assert self.ask([0.0, max(0.7, 3 * away)], [self.position, HOME]) == "succeeded 0"


class Sent:
    """A goal that was sent."""

    def __init__(self, follower, handle):
        self._follower, self._handle = follower, handle
        self._result = handle.get_result_async() if handle.accepted else None

    def cancel(self):
        future = self._handle.cancel_goal_async()
        self._follower.wait(future.done)

    def end(self):
        if self._result is None:
            return "rejected"
        self._follower.wait(self._result.done)
        answer = self._result.result()
        return f"{_STATUS[answer.status]} {answer.result.error_code}"


# --- One goal ---------------------------------------------------------------------------------------------------------


ALONE = []
"""Names of the cases of one goal without tolerances."""


def _alone(name, *arguments, **options):
    ALONE.append(name)
    CASES[name] = lambda arm: arm.ask(*arguments, **options)


_alone("first point now", [0.0, 0.5], [HOME, NEAR])
_alone("first point later")
_alone("through three points", [0.0, 0.3, 0.6], [HOME, NEAR, HOME])
_alone("velocities", [0.0, 0.3, 0.6], [HOME, HOME + 0.05, NEAR], velocities=np.outer([0, 0.25, 0], np.ones(7)))
_alone(
    "velocities and accelerations",
    [0.0, 0.5],
    [HOME, NEAR],
    velocities=np.zeros((2, 7)),
    accelerations=np.zeros((2, 7)),
)
_alone("accelerations without velocities", [0.0, 0.5], [HOME, NEAR], accelerations=np.zeros((2, 7)))
_alone("joints in another order", [0.5], [NEAR[::-1]], names=NAMES[::-1])
_alone("some of the joints", [0.5], [NEAR[:3]], names=NAMES[:3])
_alone("an unknown joint", names=["elbow", *NAMES[1:]])
_alone("a joint too many", [0.5], [[*NEAR, 0.1]], names=[*NAMES, "gripper"])
_alone("a joint twice", names=[NAMES[1], *NAMES[1:]])
_alone("no joints", [0.5], [[]], names=[])
_alone("no points", [], [])
_alone("times that decrease", [0.5, 0.3], [NEAR, HOME])
_alone("equal times", [0.5, 0.5], [NEAR, NEAR])
_alone("a negative time", [-0.1, 0.5], [HOME, NEAR])
_alone("too few positions", [0.5], [NEAR[:3]])
_alone("a point without positions", [0.3, 0.6], [[], NEAR])
_alone("too few velocities", velocities=[[0.0]])
_alone("too few accelerations", velocities=[[0.0] * 7], accelerations=[[0.0]])
_alone("a position that is NaN", [0.3, 0.6], [np.full(7, np.nan), HOME])
_alone("a velocity that is infinite", [0.3, 0.6], [HOME, NEAR], velocities=[[np.inf] * 7, [0.0] * 7])
_alone("a velocity at the end", velocities=[[0.1] * 7])
_alone("a velocity at the end that rounds to zero", velocities=[[1e-8] * 7])
_alone("effort", effort=[[1.0] * 7])
_alone("a first point 2 ms later", [0.002, 0.5], [HOME, NEAR])
_alone("1 mrad in 2 ms", [0.002], [HOME + 1e-3])
_alone("0.1 rad in 2 ms", [0.002], [NEAR])
_alone("beyond limits of position", [2.0], [HOME + np.eye(7)[0] * 3.0])
_alone("beyond limits of velocity", [0.02], [NEAR])
_alone("a start 1 mrad away, now", [0.0, 0.5], [HOME + 1e-3, NEAR])
_alone("a start 0.3 rad away, now", [0.0, 0.5], [FAR, NEAR])
_alone("here, now", [0.0], [HOME])
_alone("0.1 rad away, now", [0.0], [NEAR])
_alone(
    "200 points",
    np.linspace(0, 0.5, 200),
    [HOME + 0.1 * x**3 * (10 + x * (6 * x - 15)) for x in np.linspace(0, 1, 200)],
)
_alone("a stamp to come", [0.0, 0.5], [HOME, NEAR], stamp=0.3)
_alone("a stamp just past", [0.0, 1.0], [HOME, NEAR], stamp=-0.02)
_alone("a stamp half a second ago", [0.0, 2.0], [HOME, NEAR], stamp=-0.5)
_alone("a stamp half a second ago, first point to come", [2.0], [NEAR], stamp=-0.5)
_alone("ended before it came", [0.0, 0.5], [HOME, NEAR], stamp=-2.0)


def _tolerated(name, field, joint=NAMES[0], goal_time=0.0, **quantities):
    def play(arm):
        from control_msgs.msg import JointTolerance

        goal = arm.goal()
        setattr(goal, field, [JointTolerance(name=joint, **quantities)])
        whole, part = divmod(goal_time, 1)
        goal.goal_time_tolerance.sec, goal.goal_time_tolerance.nanosec = int(whole), round(part * 1e9)
        return arm.send(goal).end()

    CASES[name] = play


_tolerated("a tolerance on the path that is met", "path_tolerance", position=0.2)
_tolerated("a tolerance on the path that is violated", "path_tolerance", position=1e-7)
_tolerated("a tolerance at the goal", "goal_tolerance", position=0.02)
_tolerated("a tolerance on the path of -1", "path_tolerance", position=-1.0)
_tolerated("a tolerance on the path of -2", "path_tolerance", position=-2.0)
_tolerated("a tolerance on the path that is NaN", "path_tolerance", position=np.nan)
_tolerated("a tolerance on the path of an unknown joint", "path_tolerance", "elbow", position=0.1)
_tolerated("a tolerance at the goal of an unknown joint", "goal_tolerance", "elbow", position=0.1)
_tolerated("a negative time tolerance", "goal_tolerance", goal_time=-1.0, position=0.02)


@case
def several_bodies(arm):
    from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

    goal = arm.goal()
    goal.multi_dof_trajectory.points = [MultiDOFJointTrajectoryPoint()]
    return arm.send(goal).end()


# --- Two goals --------------------------------------------------------------------------------------------------------


def _on_the_way(arm, goal, seconds=2.0, past=-np.inf):
    """Send a goal on the way to ``FAR``, at positions beyond ``past``; return the outcomes of both.

    A busy machine may delay the second goal until the first has ended; then both are sent again.
    """
    while True:
        begin = time.monotonic()
        first = arm.send(arm.goal([seconds], [FAR]))
        arm.spin(0.8)
        arm.wait(lambda: np.all(arm.position >= past))
        second = arm.send(goal(arm))
        is_late = time.monotonic() > begin + seconds
        outcomes = f"{first.end()}, {second.end()}"
        if not is_late:
            return outcomes
        arm.go_home()


def _second(name, goal, **options):
    CASES[name] = partial(_on_the_way, goal=goal, **options)


def _replanned(delay):
    def goal(arm):
        here = arm.position
        arm.spin(delay)
        return arm.goal([0.0, 1.0], [here, NEAR])

    return goal


_second("replanned from the measured state", _replanned(0.0))
_second("replanned from the measured state of 50 ms ago", _replanned(0.05))
# Past the slow start of the motion, which a busy machine delays: 0.6 s later the arm is 0.15 rad on.
_second("replanned from the measured state of 0.6 s ago", _replanned(0.6), past=HOME + 0.05)
_second("another goal, 0.3 rad away, now", lambda arm: arm.goal([0.0, 1.0], [arm.position + 0.3, NEAR]))
_second("another goal, near", lambda arm: arm.goal([1.0], [NEAR]))
_second("another goal, 1 rad away", lambda arm: arm.goal([2.0], [FAR - np.eye(7)[0] * 1.3]))
_second("another goal, with a stamp to come", lambda arm: arm.goal([1.0], [NEAR], stamp=0.2))
_second("another goal, which is refused", lambda arm: arm.goal(names=["elbow", *NAMES[1:]]))
# A long motion beyond the first position, so that the arm is between positions if this process is held up for a second.
_second("no points on the way", lambda arm: arm.goal([], []), seconds=5.0, past=NEAR + 0.02)


@case
def cancelled(arm):
    return _cancelled(arm, arm.goal([1.0], [FAR]))


@case
def cancelled_before_its_stamp(arm):
    return _cancelled(arm, arm.goal([1.0], [FAR], stamp=1.0))


def _cancelled(arm, goal):
    sent = arm.send(goal)
    arm.spin(0.5)
    sent.cancel()
    return sent.end()


@case
def another_goal_after_a_cancel(arm):
    first = arm.send(arm.goal([1.0], [FAR]))
    arm.spin(0.5)
    first.cancel()
    second = arm.send(arm.goal([2.0], [NEAR]))
    return f"{first.end()}, {second.end()}"


def answers(arm, wanted=lambda name: True):
    """Outcome of each case, and the final position of the arm."""
    found = {}
    for name, play in CASES.items():
        if wanted(name):
            arm.go_home()
            found[name.replace("_", " ")] = f"{play(arm)}; {arm.place()}"
    return found


RECORDED = ROOT / "test" / "ros" / "jtc_answers.json"

DIFFERENT = {
    # A step.
    "a joint twice": "aborted -1; home",
    "a position that is NaN": "aborted -1; home",
    "a velocity that is infinite": "aborted -1; home",
    "0.1 rad in 2 ms": "aborted -1; home",
    "beyond limits of position": "aborted -1; home",
    "beyond limits of velocity": "aborted -1; home",
    "a start 0.3 rad away, now": "aborted -1; home",
    "0.1 rad away, now": "aborted -1; home",
    "replanned from the measured state of 0.6 s ago": "succeeded 0, aborted -1; far",
    "another goal, 0.3 rad away, now": "succeeded 0, aborted -1; far",
    # Dropped tolerances and fields.
    "a tolerance on the path that is NaN": "aborted -1; home",
    "a tolerance on the path of an unknown joint": "aborted -1; home",
    "a tolerance at the goal of an unknown joint": "aborted -1; home",
    "several bodies": "aborted -1; home",
    # A repeated point is dropped.
    "equal times": "succeeded 0; near",
    # Others are held.
    "some of the joints": "succeeded 0; elsewhere",
    # Stops.
    "no points": "succeeded 0; home",
    "no points on the way": "aborted -1, succeeded 0; elsewhere",
    "a tolerance on the path that is violated": "aborted -4; elsewhere",
    "cancelled before its stamp": "canceled 0; home",
}
"""Different answers of the action; docs/play.md has the reasons."""


def expected_answers():
    """Answers of the action: it accepts each goal, and aborts a refused goal with the reason."""
    expected = {
        name: answer.replace("rejected", "aborted -1") for name, answer in json.loads(RECORDED.read_text()).items()
    }
    assert {name: expected[name] for name in DIFFERENT if expected[name] == DIFFERENT[name]} == {}
    return expected | DIFFERENT
