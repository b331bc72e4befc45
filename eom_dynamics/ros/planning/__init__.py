# SPDX-License-Identifier: Apache-2.0
"""Services for planners: whole trajectories and batches, computed in a process of their own beside the stream.

Two threads of one Python process take turns, and a batch of thousands of states would make setpoints wait. So the
node starts a second process (:mod:`.supervisor`), which serves these services under the node's names (:mod:`.process`),
at a lower priority, and tells it what robot there is and whether the node is active (:mod:`.link`).
"""
