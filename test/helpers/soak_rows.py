# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables in docs/reliability.md, which bench/reliability.py writes from the report of the tests."""

import json


def report(record_property, table, **cells):
    """Add a row to a table."""
    record_property(table, json.dumps(cells))
    print(table, cells)


def report_fault(record_property, fault, counts, wrong, values, remark):
    """Add a fault: setpoints sent and lost, wrong answers, and the state of the node after it."""
    state = f"{values['state']}, {values['backend']}"
    cells = {"fault": fault, "sent": counts["sent"], "lost": counts["lost"], "wrong": wrong}
    report(record_property, "fault", **cells, state=state, remark=remark)
