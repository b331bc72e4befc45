# SPDX-License-Identifier: Apache-2.0
"""Other nodes that command the same motors: the choice of the active node, and the wait of the rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import uuid4

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile

from ...spelling import listed
from ...terminal import printable

# Time from the start of discovery until other processes on this machine, and this one, know of each other, s: nearly
# always. Thereafter, they learn of topics within the second time.
_DISCOVERY, _ANNOUNCEMENT = 0.5, 0.1

# Time that a publisher has to report diagnostics of a dynamics node, s: two of their periods.
_PATIENCE = 2.0

# Age of diagnostics of a node that counts as dead or hung, and age at which they are deleted, s.
_SILENCE, _FORGOTTEN = 5.0, 60.0

# Period of own diagnostics while a publisher is new, and time during which it counts as new, s.
_BETWEEN_REPORTS, _NEW = 0.1, 5.0

# Received diagnostics that are kept until they are read.
_DEPTH = 100

_UNKNOWN = "a node of unknown name"  # the middleware does not know the name yet, or another middleware publishes


class Rival(NamedTuple):
    """Another dynamics node, by its diagnostics."""

    name: str
    topics: frozenset[str]  # topics of its commands
    state: str  # of its life cycle
    key: tuple[int, str]  # time of its activation, ns, and identity; the smaller key has precedence
    heard: int  # ns

    @property
    def is_silent(self) -> bool:
        """True if the node is dead or hung."""
        return time.time_ns() - self.heard > _SILENCE * 1e9


class Situation(NamedTuple):
    """Other publishers of the command topics, by name; ``topics`` of all of them."""

    topics: dict[str, list[str]]
    unheard: set[str]  # may yet turn out to be dynamics nodes
    foreign: set[str]  # without diagnostics of a dynamics node
    rivals: list[Rival]  # dynamics nodes that are neither dead nor hung

    @property
    def active(self) -> list[Rival]:
        """Rivals that command the motors."""
        return [x for x in self.rivals if x.state in ("active", "deactivating")]

    def text(self, rivals: Iterable[Rival], others: Iterable[str] = ()) -> str:
        """The foreign publishers, some rivals and some others, as a clause; empty for none."""
        names = dict.fromkeys([*sorted({*self.foreign, *others}), *(x.name for x in rivals)])
        return printable("; ".join(f"{x} publishes on {listed(self.topics[x])}, too" for x in names))


class Rivals:
    """Other publishers of the command topics, by discovery, which are dynamics nodes by their diagnostics.

    Diagnostics are read when there is another publisher, so that they cost a stream nothing.

    Args:
        topics: full names of the command topics.
        report: publishes the diagnostics of this node.
        discovering_since: time, s, of time.monotonic(), since when this process discovers others; None for now.

    Attributes:
        key: time of the activation of this node, ns, and its identity.
    """

    def __init__(
        self, node: Node, topics: list[str], report: Callable[[], None], discovering_since: float | None
    ) -> None:
        self._node, self._topics, self._report = node, topics, report
        self._name = node.get_fully_qualified_name()
        now = time.monotonic()
        self.discovered = max(
            (now if discovering_since is None else discovering_since) + _DISCOVERY, now + _ANNOUNCEMENT
        )
        self.key = 0, uuid4().hex
        self._heard: dict[str, Rival] = {}
        # Since when publishers are unheard, by name; their number; and until when they are new, s.
        self._unheard_since: dict[str, float] = {}
        self._count, self._new_until, self._reported = 0, 0.0, 0.0
        # Nodes that were active while this one waited.
        self._led_by: set[str] = set()
        # No executor reads it, and no event handlers wake one: see MeasuredJoints.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._reader = node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda _: None, QoSProfile(depth=_DEPTH), event_callbacks=events
        )
        node._subscriptions.remove(self._reader)

    def close(self) -> None:
        """Destroy the reader; destroying the node does not."""
        self._reader.destroy()

    @property
    def values(self) -> dict[str, str]:
        """Values of this node's diagnostics, for other nodes."""
        activation, instance = self.key
        return {"instance": instance, "activation": str(activation), "command topics": " ".join(self._topics)}

    # --- Activation -----------------------------------------------------------------------

    def bar(self, is_allowed: Callable[[], bool]) -> str:
        """Nodes that bar the activation of this one now, as a clause; empty for none.

        Waits until other nodes are discovered, and known by their diagnostics.
        """
        self.key, self._led_by = (time.time_ns(), self.key[1]), set()
        while not is_allowed():
            found = self._look()
            bars = [*found.active, *(x for x in found.rivals if x.state == "activating" and x.key < self.key)]
            if text := found.text(bars):
                return text
            if not found.unheard and time.monotonic() >= self.discovered:
                break
            time.sleep(0.01)
        return ""

    def await_end(self) -> str:
        """Nodes that must end before this node is activated, as a clause; empty if it may be activated."""
        found = self._look()
        self._led_by |= {x.key[1] for x in found.active}
        waits_for = [x for x in found.rivals if x.key[1] in self._led_by or x.state == "activating"]
        return found.text(waits_for, found.unheard)

    def contest(self) -> tuple[str, bool]:
        """Other active nodes on the same motors, as a clause, and whether one of them has precedence."""
        found = self._look()
        earlier = [x for x in found.active if x.key < self.key]
        self._led_by = {x.key[1] for x in earlier}
        return found.text(found.active), bool(earlier)

    # --- Publishers -----------------------------------------------------------------------

    def _look(self) -> Situation:
        """Other publishers at present; the diagnostics of this node are reported to new publishers."""
        names = {topic: self._publishers(topic) for topic in self._topics}
        found = Situation({}, set(), set(), [])
        count = sum(x.total() for x in names.values())
        now = time.monotonic()
        if count:
            if count > self._count:
                self._new_until = now + _NEW
            self._read()
            self._sort(names, found, now)
            if now < self._new_until and now >= self._reported + _BETWEEN_REPORTS:
                self._reported = now
                self._report()
        self._count = count
        self._unheard_since = {x: self._unheard_since[x] for x in found.unheard | found.foreign}
        return found

    def _sort(self, names: dict[str, Counter[str]], found: Situation, now: float) -> None:
        """Sort publishers by their diagnostics."""
        rivals = {}
        for topic, publishers in names.items():
            for name, number in publishers.items():
                found.topics.setdefault(name, []).append(topic)
                known = {key: x for key, x in self._heard.items() if x.name == name and topic in x.topics}
                rivals.update(known)
                if number > len(known):
                    since = self._unheard_since.setdefault(name, now)
                    (found.foreign if now > since + _PATIENCE else found.unheard).add(name)
        found.rivals.extend(x for x in rivals.values() if not x.is_silent)

    def _publishers(self, topic: str) -> Counter[str]:
        """Number of other publishers of a topic, by the name of their node."""
        if self._node.count_publishers(topic) < 2:
            return Counter()
        publishers = self._node.get_publishers_info_by_topic(topic)
        names = [f"{x.node_namespace.rstrip('/')}/{x.node_name}" for x in publishers]
        return Counter(_UNKNOWN if "_UNKNOWN_" in x else x for x in names) - Counter([self._name])

    def _read(self) -> None:
        """Read diagnostics of dynamics nodes that have arrived."""
        while (taken := self._reader.handle.take_message(DiagnosticArray, False)) is not None:
            message, times = taken
            for status in message.status:
                with suppress(KeyError, ValueError):  # of another kind of node
                    self._hear(status, times["received_timestamp"] or times["source_timestamp"])
        oldest = time.time_ns() - _FORGOTTEN * 1e9
        self._heard = {key: x for key, x in self._heard.items() if x.heard > oldest}

    def _hear(self, status: Any, time: int) -> None:
        values = {x.key: x.value for x in status.values}
        key = int(values["activation"]), values["instance"]
        if key[1] != self.key[1]:
            topics = frozenset(values["command topics"].split(" "))
            self._heard[key[1]] = Rival(status.hardware_id, topics, values["state"], key, time)
