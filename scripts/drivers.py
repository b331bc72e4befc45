# SPDX-License-Identifier: Apache-2.0
"""Check the claims of docs/drivers.md against the sources of the drivers.

drivers.py [FOLDER] [--newest]

FOLDER has clones as OWNER+NAME or OWNER+NAME/repo; without it, they are cloned from GitHub. With --newest, their heads
are compared instead of the commits below.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FRANKA = "frankarobotics/franka_ros2", "43357d15b834c08b215df755b16989c972cb4204"
LBR = "lbr-stack/lbr_fri_ros2_stack", "218d723f817c61314988833611effddc5333ca6c"
UR = "UniversalRobots/Universal_Robots_ROS2_Driver", "696e1a7b7f46edd7092c9a9237f33b526a981cf1"
KORTEX = "Kinovarobotics/ros2_kortex", "1fdbef345954b326627dc3792981e18e2221450b"
ODRIVE = "odriverobotics/ros_odrive", "8ed510b11675919df39751016cba200eebaa7d18"

_FR3 = "franka_fr3_moveit_config/config/fr3_ros_controllers.yaml"
_GEN3 = "kortex_description/arms/gen3/7dof/urdf/kortex.ros2_control.xacro"
_ODRIVE = "odrive_ros2_control/src/odrive_hardware_interface.cpp"
_FRICTION = "ur_controllers/src/friction_model_controller_parameters.yaml"
_LBR = "lbr_description/ros2_control/lbr_system_config.yaml"

CLAIMS = (
    (FRANKA, _FR3, r"fr3_arm_controller:\s+ros__parameters:", True, "gains of fr3_arm_controller"),
    *(
        (FRANKA, _FR3, rf"fr3_joint{k}: \{{ p: {p}\., d: {d}\.", True, f"joint {k}: link_kp {p}, link_kd {d}")
        for k, p, d in ((1, 600, 30), (4, 600, 30), (5, 250, 10), (6, 150, 10), (7, 50, 5))
    ),
    (FRANKA, _FR3, r"update_rate: 1000\b", True, "1000 Hz"),
    (LBR, _LBR, r"client_command_mode:.*\[position, torque, wrench\]", True, "client_command_mode: torque"),
    (LBR, _LBR, r"joint_position_tau", False, "no joint_position_tau up to 2.1.2"),
    (LBR, _LBR, r"pid_p: 0\.1\b", True, "up to 2.1.2, a PID follows positions"),
    (
        UR,
        "ur_robot_driver/config/ur_controllers.yaml",
        r"gravity_update_controller:",
        True,
        "gravity_update_controller",
    ),
    (
        UR,
        "ur_robot_driver/config/ur_controllers.yaml",
        r"friction_model_controller:",
        True,
        "friction_model_controller",
    ),
    (UR, _FRICTION, r"scale:", False, "no friction scales in the parameters of friction_model_controller"),
    (UR, "ur_robot_driver/doc/usage/force_torque_control.rst", r">= 5\.25\.1 .* >= 10\.12\.1", True, "PolyScope"),
    (KORTEX, _GEN3, r'command_interface name="position"', True, "kortex: position"),
    (KORTEX, _GEN3, r'command_interface name="(velocity|effort)"', False, "kortex: nothing else"),
    (ODRIVE, _ODRIVE, r"Input_Pos = .*/ \(2 \* M_PI\)", True, "the plugin converts rad to turns"),
)
"""Repository and commit, path, pattern, whether it is found there, claim."""


def main(arguments):
    """Print each claim with its result; returns the number of false claims."""
    folder = next((Path(x) for x in arguments if not x.startswith("-")), None)
    with tempfile.TemporaryDirectory() as temporary:
        failed = 0
        for (name, commit), path, pattern, there, claim in CLAIMS:
            repository = _repository(folder, Path(temporary), name)
            commit = "HEAD" if "--newest" in arguments else commit
            shown = subprocess.run(
                ["git", "-C", repository, "show", f"{commit}:{path}"], capture_output=True, text=True
            )
            holds = shown.returncode == 0 and bool(re.search(pattern, shown.stdout)) == there
            failed += not holds
            print(f"{'holds' if holds else 'FAILS':6} {name}@{commit[:8]} {path}: {claim}")
    return failed


def _repository(folder, temporary, name):
    """Folder of a clone."""
    here = (folder or temporary) / name.replace("/", "+")
    if folder is None and not here.exists():
        url = f"https://github.com/{name}"
        subprocess.run(["git", "clone", "-q", "--bare", "--filter=blob:none", url, here], check=True)
    return here / "repo" if (here / "repo").is_dir() else here


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
