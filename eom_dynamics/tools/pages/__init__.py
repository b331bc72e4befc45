# SPDX-License-Identifier: Apache-2.0
"""HTML pages: ``page`` makes one file of a result, ``charts`` makes its Plotly figures."""
