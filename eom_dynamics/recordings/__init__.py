# SPDX-License-Identifier: Apache-2.0
"""Recordings and motions from bags and tables, as arrays; ``docs/architecture.md`` has the steps."""
