# SPDX-License-Identifier: Apache-2.0
# The package built on ROS 2, with its dependencies by rosdep:
#     docker build --tag eom_dynamics . && docker run --rm --interactive --tty --network host eom_dynamics
# Other distributions: --build-arg ROS_DISTRO=kilted
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /ros2_ws

# The list of dependencies first, so that an edit of the sources does not install them again.
COPY package.xml src/eom_dynamics/package.xml
RUN apt-get update \
 && rosdep update --rosdistro "${ROS_DISTRO}" \
 && rosdep install --from-paths src --ignore-src --default-yes --rosdistro "${ROS_DISTRO}" \
      --dependency-types build --dependency-types buildtool --dependency-types exec \
 && rm -rf /var/lib/apt/lists/*

COPY . src/eom_dynamics
RUN source "/opt/ros/${ROS_DISTRO}/setup.bash" && colcon build --packages-select eom_dynamics --cmake-args -DBUILD_TESTING=OFF

# The entry point of the image sources ROS 2; this adds the workspace.
RUN sed --in-place '$i source /ros2_ws/install/setup.bash --' /ros_entrypoint.sh
CMD ["ros2", "launch", "eom_dynamics", "simulated_robot.launch.py"]
