# SPDX-License-Identifier: Apache-2.0
"""Viewer of robots and recordings in a browser."""
