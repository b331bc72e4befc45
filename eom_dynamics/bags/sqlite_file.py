# SPDX-License-Identifier: Apache-2.0
"""A file of a bag that is an SQLite database, whole or damaged.

Messages come in the order in which they were written. Where the database is damaged, the next message that can be read
is looked for behind the damage; rosbags' reader refuses such a file as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from .errors import BagError
from .storage import Block, Damage, StoredTopic

# Messages at a time.
_SIZE = 2048

# No bag has as many messages.
_LARGEST_NUMBER = 2**40

# With damage at more places than these, what is left is not looked for.
_MOST_PLACES = 1000

_MESSAGES = "SELECT id, topic_id, timestamp, data FROM messages WHERE id >= ?"

_WHOLE_PAGES = "eom_dynamics-whole-pages"


class SqliteFile:
    """Topics and messages of the file.

    Attributes:
        topics: by their number in the file.
        damage: what could not be read so far.
    """

    def __init__(self, path: Path) -> None:
        """Read the topics.

        Raises:
            BagError: it is no database of a bag, or too damaged to say what is in it.
        """
        self.path, self.damage = path, Damage()
        self._size = max(1, path.stat().st_size)
        # A log beside it holds what a recorder that was killed had not yet moved to it.
        log = path.with_name(f"{path.name}-wal")
        whole = "" if log.exists() and log.stat().st_size else "&immutable=1"
        try:
            self._connection = apsw.Connection(
                f"file:{quote(str(path))}?mode=ro{whole}",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
                vfs=_vfs(path),
            )
        except apsw.Error as error:
            raise BagError(f"{path}: cannot be read as an sqlite3 bag: {error}") from None
        try:
            # Else SQLite opens no database that is shorter than its header says.
            self._connection.execute("PRAGMA writable_schema=ON")
            definitions = self._definitions()
            rows = list(self._connection.execute("SELECT id, name, type, serialization_format FROM topics"))
        except (apsw.Error, UnicodeDecodeError) as error:
            self._connection.close()
            raise BagError(f"{path}: cannot be read as an sqlite3 bag: {' '.join(str(error).split())}") from None
        self.topics = {
            number: StoredTopic(str(name), str(kind), str(definitions.get(kind, "")), str(encoding))
            for number, name, kind, encoding in rows
        }

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def blocks(self, topics: Collection[int]) -> Iterator[Block]:
        """The messages of some topics, in blocks, each with the share of the file that is behind."""
        start, size, behind = 1, _SIZE, 0
        while True:
            try:
                for rows in self._scan(topics, start, size):
                    messages = [row[1:] for row in rows if isinstance(row[2], int) and isinstance(row[3], bytes)]
                    start = rows[-1][0] + 1
                    if len(messages) < len(rows):
                        self.damage.add(
                            f"{self.path}: {len(rows) - len(messages)} of messages {rows[0][0]} to {start - 1} are none"
                        )
                    behind += sum(len(message[2]) for message in messages)
                    yield Block(messages, min(1.0, behind / self._size))
            except (apsw.Error, UnicodeDecodeError) as error:
                if size > 1:  # one by one up to the damage
                    size = 1
                    continue
                good = self._readable_from(start)
                lost = f"messages from {start} on" if good is None else f"messages {start} to {good - 1}, of any topic,"
                self.damage.add(f"{self.path}: {lost} cannot be read: {' '.join(str(error).split())}")
                if good is not None and self.damage.count < _MOST_PLACES:
                    start, size = good, _SIZE
                    continue
                if good is not None:
                    self.damage.add(
                        f"{self.path}: messages from {good} on are left out: there is damage at each of them"
                    )
            return

    def _definitions(self) -> dict[Any, Any]:
        """Texts of types by name; none in the files of ROS 2 before Iron."""
        with suppress(apsw.SQLError):
            return dict(
                self._connection.execute("SELECT topic_type, encoded_message_definition FROM message_definitions")
            )
        return {}

    def _scan(self, topics: Collection[int], start: int, size: int) -> Iterator[list[Any]]:
        query = f"{_MESSAGES} AND topic_id IN ({','.join('?' * len(topics))}) ORDER BY id"
        cursor = self._connection.execute(query, (start, *topics))
        while rows := list(islice(cursor, size)):
            numbers = [start - 1, *(row[0] for row in rows)]
            if any(later <= earlier for earlier, later in pairwise(numbers)):
                raise apsw.CorruptError("messages are not in their order")
            start = numbers[-1] + 1
            yield rows

    def _readable_from(self, damaged: int) -> int | None:
        """The number of the first message behind a damaged one that can be read."""
        bad, step = damaged, 1
        while (good := self._next(bad + step)) is None:
            bad, step = bad + step, 2 * step
            if step > _LARGEST_NUMBER:
                return None
        upper = bad + step
        while upper - bad > 1:
            middle = (bad + upper) // 2
            found = self._next(middle)
            bad, upper, good = (middle, upper, good) if found is None else (bad, middle, found)
        return good

    def _next(self, number: int) -> int | None:
        """The number of the first message from a number on; None where there is none that can be read."""
        try:
            for row in self._connection.execute(f"{_MESSAGES} ORDER BY id LIMIT 1", (number,)):
                return int(row[0]) if row[0] >= number else None
        except (apsw.Error, UnicodeDecodeError):
            pass
        return None


def _vfs(path: Path) -> str | None:
    """The layer to read a file through: SQLite takes what is missing of a page that is cut off for zeros."""
    with path.open("rb") as file:
        header = file.read(18)
    page = _page_size(header[16:18])
    if page < 512 or path.stat().st_size % page == 0:
        return None
    if _WHOLE_PAGES not in apsw.vfs_names():
        global _registered
        _registered = _WholePages()
    return _WHOLE_PAGES


_registered: apsw.VFS | None = None


class _WholePages(apsw.VFS):
    """The default layer, but that files end with their last whole page."""

    def __init__(self) -> None:
        super().__init__(_WHOLE_PAGES, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _WholePagesFile("", name, flags)


class _WholePagesFile(apsw.VFSFile):
    def xFileSize(self) -> int:
        size = super().xFileSize()
        page = _page_size(super().xRead(2, 16))
        return size - size % page if page >= 512 else size


def _page_size(field: bytes) -> int:
    """Of a database, from its header."""
    size = int.from_bytes(field, "big")
    return 65536 if size == 1 else size
