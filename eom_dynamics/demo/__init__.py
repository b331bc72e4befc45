# SPDX-License-Identifier: Apache-2.0
"""The demo: a node and a player as processes of their own, what came back evaluated, and shown.

``plan`` says what is played, ``run`` starts the processes, ``evaluate`` makes the numbers, ``page`` and
``picture`` show them.
"""
