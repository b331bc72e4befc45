# SPDX-License-Identifier: Apache-2.0
"""Identification of links: inertias, friction and offsets from joint or motor efforts."""
