# SPDX-License-Identifier: Apache-2.0
"""Parts of the node ``eom_dynamics``.

==================================  ======================================================================
:mod:`.setpoint_stream`             from setpoints to published commands
:mod:`.command_topics`              topics of commands
:mod:`.supervision`                 loss of setpoints, and setpoints in doubt
:mod:`.statistics`                  counts of the stream, for diagnostics
:mod:`.stream_warnings`             the same in the log
:mod:`.task_topic`                  setpoints of a tool
:mod:`.spline_topic`                trajectories, validated in a thread
:mod:`.trajectory_player`           trajectories as a stream of setpoints
:mod:`.clock_watch`                 jumps of the clock while a trajectory is played
:mod:`.inverse_dynamics_service`    the command for one state on request
:mod:`.dynamics_parameters`         parameters of the node
:mod:`.realtime`                    priority, processors and locked memory
:mod:`.transitions`                 log of lifecycle transitions, and impossible ones
==================================  ======================================================================
"""
