# SPDX-License-Identifier: Apache-2.0
"""Common parts of HTML pages and pictures.

``html_page`` makes one HTML file of text and charts, ``charts`` and ``timing`` make charts, ``thinning`` makes curves
of long recordings, ``style`` has colours, ``units`` and ``numbers`` format quantities.
"""
