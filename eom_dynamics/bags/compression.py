# SPDX-License-Identifier: Apache-2.0
"""Bounded decompression, safe against archives that unpack to more than memory or disk holds."""

from __future__ import annotations

from pathlib import Path

import zstandard

LARGEST = 2**28
"""Largest message or chunk that is unpacked, bytes; recorders write chunks of some MiB."""

# Of a whole file: recordings shrink to a tenth, constant ones to a hundredth.
_RATIO = 1000
_LEAST = 2**30

# Records differ by their times, and take some bytes of a compressed file each.
_BYTES_OF_RECORD = 2
_LEAST_RECORDS = 100_000

_PIECE = 2**20


class TooLargeError(ValueError):
    """Compressed data unpacks to more than is allowed."""


class Allowance:
    """Limit on the total unpacked size of the compressed parts of a file.

    Attributes:
        records: number of records that may still be read from them.
    """

    def __init__(self, size: int) -> None:
        """Allow a multiple of the size of the file, bytes."""
        self._allowed = self._left = max(_LEAST, _RATIO * size)
        self._most_records = max(_LEAST_RECORDS, size // _BYTES_OF_RECORD)
        self.begin()

    def begin(self) -> None:
        """Begin to read the file, perhaps again: the count of records restarts, that of unpacked bytes does not."""
        self.records = self._most_records

    def take(self, count: int) -> None:
        """Count unpacked bytes.

        Raises:
            TooLargeError: all of them together are more than allowed.
        """
        self._left -= count
        if self._left < 0:
            raise TooLargeError(f"the file unpacks to more than {self._allowed:,} bytes")


def unpack_chunk(data: bytes, compression: str, size: int, allowance: Allowance) -> bytes:
    """Decompress a chunk of an MCAP file.

    Args:
        compression: ``zstd``, ``lz4``, or empty for none.
        size: of the result, as the chunk says, bytes.

    Raises:
        ValueError: it is larger than it says or than is allowed, or its compression is unknown.
        zstandard.ZstdError, RuntimeError: it cannot be decompressed.
    """
    if not compression:
        return data
    if size > LARGEST:
        raise TooLargeError(f"it says that it unpacks to {size:,} bytes, more than {LARGEST:,}")
    allowance.take(size)
    if compression == "zstd":
        if zstandard.frame_content_size(data) > size:
            raise TooLargeError(f"it unpacks to more than the {size:,} bytes that it says")
        return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=size))
    if compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor

        decompressor = LZ4FrameDecompressor()
        result = bytes(decompressor.decompress(data, max_length=size + 1))
        if len(result) > size:
            raise TooLargeError(f"it unpacks to more than the {size:,} bytes that it says")
        if not decompressor.eof:
            raise ValueError("it is cut off")
        return result
    raise ValueError(f"its compression {compression!r:.40} is unknown")


def unpack_message(decompressor: zstandard.ZstdDecompressor, data: bytes, allowance: Allowance) -> bytes:
    """Decompress a message; only its first frame is used.

    Raises:
        TooLargeError: it is larger than allowed.
        zstandard.ZstdError: it cannot be decompressed.
    """
    size = zstandard.frame_content_size(data)
    if size >= 0:
        _check_message(size)
        allowance.take(size)
        return bytes(decompressor.decompress(data))
    pieces, size = [], 0
    for piece in decompressor.read_to_iter(data, write_size=_PIECE):
        allowance.take(len(piece))
        pieces.append(piece)
        size += len(piece)
        _check_message(size)
    return b"".join(pieces)


def _check_message(size: int) -> None:
    if size > LARGEST:
        raise TooLargeError(f"a message unpacks to more than {LARGEST:,} bytes")


def unpack_file(path: Path, target: Path) -> None:
    """Decompress a file as far as possible, keeping what was unpacked before an error.

    Raises:
        TooLargeError: it is larger than allowed.
        zstandard.ZstdError: it cannot be decompressed any further.
        OSError: a file cannot be read or written.
    """
    allowance = Allowance(path.stat().st_size)
    with path.open("rb") as compressed, target.open("wb") as plain:
        for piece in zstandard.ZstdDecompressor().read_to_iter(compressed, write_size=_PIECE):
            allowance.take(len(piece))
            plain.write(piece)
