# SPDX-License-Identifier: Apache-2.0
"""Supervision of a setpoint stream, specified in docs/watchdog.md, and its fast path; without ROS.

==============================  ======================================================================================
:mod:`.setpoint_age`            time since the last valid setpoint
:mod:`.arm_stop`                the stop of an arm within limits, from its last command
:mod:`.watchdog`                what to do when setpoints are lost and come back, and efforts that fade to zero
:mod:`.consistency`             whether each field is the time derivative of the one before
:mod:`.doubts`                  repeated stamps, jumps and that of a stream, each ignored, reported or refused
:mod:`.compiled_stream`         from the bytes of a setpoint to those of its command in one call
:mod:`.learned_shapes`          such calls for the shapes that messages turn out to have
==============================  ======================================================================================
"""
