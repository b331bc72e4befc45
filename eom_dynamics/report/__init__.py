# SPDX-License-Identifier: Apache-2.0
"""Recordings to look at: one page for one or several bags.

``record`` says what a page takes, ``read`` takes it from bags, ``findings`` makes the numbers, ``page`` shows them.
"""
