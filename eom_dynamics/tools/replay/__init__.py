# SPDX-License-Identifier: Apache-2.0
"""Offline replay: the commands that the node would have published for recorded motions.

:func:`.run.replay` takes bags and folders of bags, and compares the outputs; :func:`.one.replay_bag` replays one bag,
:func:`.run.replay_bags` many, on the cores of a machine or on a Dask cluster.
"""
