# SPDX-License-Identifier: Apache-2.0
"""What the pages and pictures that people look at have in common.

``page`` makes one HTML file of text and charts, ``charts`` the base of every chart, ``style`` says colours, ``units``
and ``numbers`` how quantities are written, ``thinning`` how a long recording becomes a curve.
"""
