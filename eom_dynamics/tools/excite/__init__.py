# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics excite``: files and summary of an optimal excitation."""
