# SPDX-License-Identifier: Apache-2.0
"""Writers of robot descriptions: parameter files and URDF."""
