# SPDX-License-Identifier: Apache-2.0
"""Targets of the fuzzer: each module has ``check(data)``, which raises where the bytes break a promise.

The promise: an input is answered with finite numbers, or refused with an exception of this package, of one line.
``TOKENS`` of a module are words that the fuzzer inserts.
"""
