# SPDX-License-Identifier: Apache-2.0
"""Law of the control loop in readable Python, which shares no code with it."""
