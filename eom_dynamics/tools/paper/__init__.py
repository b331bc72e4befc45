# SPDX-License-Identifier: Apache-2.0
"""The example of the paper of Müller and Kumar (2021), recomputed and compared with its published values."""
