# SPDX-License-Identifier: Apache-2.0
"""Read SQLite files of bags, in the order in which messages were written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from .storage import BagError, Block, Damage, unpacked
from .types import Topic

# Messages read at a time: as many are left out where one of them is damaged.
_STEP = 64

# Python decodes texts of the database, and SQLite's messages with parts of them.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)

# Attempts to continue reading after damage.
_MOST_FAILURES = 5000

# Steps of SQLite's virtual machine in one query: a topic or some messages take a few each, a damaged or hostile
# database without end.
_STEPS = 10_000
_MOST_STEPS = 10_000_000

# No bag has as many messages.
_LARGEST_ID = 2**60


class SqliteFile:
    """SQLite file reader; reads a damaged database on both sides of the damage.

    Attributes:
        topics: by their number in the file.
        damage: what could not be read so far.
        custom_data: empty; that of metadata.yaml is not in the file.
    """

    def __init__(self, path: Path, source: Path) -> None:
        """Read the topics; messages name ``source``, the file that ``path`` was unpacked from."""
        unpack, whole = unpacked(path, source)
        # Ubuntu's sqlite3 lacks .recover; ros2 bag reindex wants the number in the file name.
        remedy = (
            f"try: {unpack}mkdir recovered; sqlite3 {whole} .dump | sed 's/^ROLLBACK.*/COMMIT;/' | "
            "sqlite3 recovered/recovered_0.db3; ros2 bag reindex recovered"
        )
        self.custom_data: dict[str, str] = {}
        self.path, self.damage = source, Damage(remedy)
        self._size = max(1, path.stat().st_size)
        self._left = _MOST_STEPS
        # A recorder that was killed leaves its last messages in a write-ahead log, which SQLite ignores if immutable.
        log = path.with_name(f"{path.name}-wal")
        immutable = "" if log.exists() and log.stat().st_size else "&immutable=1"
        try:
            self._connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro{immutable}", uri=True)
            self._connection.set_progress_handler(self._count, _STEPS)
            try:
                for table in ("topics", "messages", "message_definitions"):
                    self._check_table(table)
                self.topics = self._topics()
            except _DAMAGED:
                self._connection.close()
                raise
        except _DAMAGED as error:
            reason = " ".join(str(error).split())
            raise BagError(f"{source}: cannot be read as an sqlite3 bag: {reason}; {remedy}") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def blocks(self, topics: Collection[int]) -> Iterator[Block]:
        """Read the messages of some topics, in blocks."""
        start, lost, failures, reason, done = 0, None, 0, "", 0
        while failures < _MOST_FAILURES:
            try:
                rows = self._rows(topics, start)
                following = start + _STEP if rows else self._first(start + _STEP)
            except _DAMAGED as error:
                lost = start if lost is None else lost
                start, failures, reason = start + _STEP, failures + 1, " ".join(str(error).split())
                if self._left < 0:  # the next query would take as long
                    break
                continue
            if lost is not None:
                self.damage.add(f"{self.path}: messages {lost} to {start - 1} of all topics cannot be read: {reason}")
                lost = None
            if rows:
                times, messages = zip(*rows, strict=True)
                done += sum(map(len, messages))
                yield Block(times, messages, min(1.0, done / self._size))
            if following is None:
                break
            start = following
        if lost is not None:
            self.damage.add(f"{self.path}: messages from {lost} on of all topics cannot be read: {reason}")

    def _rows(self, topics: Collection[int], start: int) -> list[tuple[int, bytes]]:
        """Read times and messages with an id from ``start`` on, before ``start + _STEP``."""
        query = (
            "SELECT timestamp, data FROM messages WHERE id >= ? AND id < ? "
            f"AND topic_id IN ({','.join('?' * len(topics))}) ORDER BY id"
        )
        rows = self._query(query, start, start + _STEP, *topics).fetchmany(_STEP + 1)
        # A damaged page can lead back to an earlier one, without end.
        if len(rows) > _STEP or not all(type(time) is int and type(data) is bytes for time, data in rows):
            raise sqlite3.DatabaseError("rows are not messages")
        return rows

    def _first(self, start: int) -> int | None:
        """Find the first id from a number on."""
        query = "SELECT id FROM messages WHERE id >= ? ORDER BY id LIMIT 1"
        for (found,) in self._query(query, start):
            if not start <= found < _LARGEST_ID:
                raise sqlite3.DatabaseError("messages are not in order")
            return int(found)
        return None

    def _query(self, query: str, *values: int | str) -> sqlite3.Cursor:
        self._left = _MOST_STEPS
        return self._connection.execute(query, values)

    def _count(self) -> bool:
        """Whether SQLite should give up the query."""
        self._left -= _STEPS
        return self._left < 0

    def _check_table(self, name: str) -> None:
        """Refuse what computes its rows instead of storing them, and may never end: views, generated columns."""
        found = self._query("SELECT type, rootpage FROM sqlite_master WHERE lower(name) = ?", name).fetchmany(2)
        if any(kind != "table" or not page for kind, page in found):
            raise sqlite3.DatabaseError(f"{name} is not a table of stored rows")
        columns = self._query(f"PRAGMA table_xinfo({name})").fetchmany(100)
        if any(column[6] for column in columns):
            raise sqlite3.DatabaseError(f"table {name} has generated columns")
        if name == "messages" and not any(c[1] == "id" and c[2].upper() == "INTEGER" and c[5] for c in columns):
            raise sqlite3.DatabaseError(f"table {name} has no primary key id")

    def _topics(self) -> dict[int, Topic]:
        definitions: dict[str, str] = {}
        with suppress(sqlite3.OperationalError):  # files of ROS 2 before Iron have no such table
            query = "SELECT topic_type, encoded_message_definition FROM message_definitions"
            definitions = dict(self._query(query))
        return {
            number: Topic(str(name), str(kind), str(definitions.get(kind, "")), str(encoding))
            for number, name, kind, encoding in self._query("SELECT id, name, type, serialization_format FROM topics")
        }
