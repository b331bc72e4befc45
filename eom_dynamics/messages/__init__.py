# SPDX-License-Identifier: Apache-2.0
"""Conversion of setpoint messages to commands, without ROS; shared by the node and offline replay.

==============================  ======================================================================
:mod:`.setpoint_to_command`     a setpoint or a request of one state becomes a command
:mod:`.fields`                  names of fields
:mod:`.joint_order`             names of joints and motors, matched with those of the robot
:mod:`.samples`                 fields with an entry for each joint, of one sample or many
:mod:`.cdr`                     places of stamp and numbers in serialised messages
:mod:`.wrenches`                wrenches by force and torque, to and from arrays with the moment first
:mod:`.waypoints`               points of trajectories
:mod:`.spline_trajectory`       trajectories as piecewise polynomials
:mod:`.equation_terms`          matrices of the equations of motion
:mod:`.deflection_filter`       springs with dampers, whose state goes on from setpoint to setpoint
==============================  ======================================================================
"""
