# SPDX-License-Identifier: Apache-2.0
"""Reports: one HTML page of one or several recordings.

``record`` defines the data of a recording and evaluates it, ``read`` reads it from bags and adds commands if they are
missing, ``results`` shows it.
"""
