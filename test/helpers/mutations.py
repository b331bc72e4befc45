# SPDX-License-Identifier: Apache-2.0
"""Damage files at random, from a seed: as disks, transfers and attackers do."""

import numpy as np

_LARGEST_BLOCK = 4096


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return content with flipped bytes, cut off, with a zeroed or duplicated block, or several of these."""
    for _ in range(rng.integers(1, 3)):
        content = _MUTATIONS[rng.integers(len(_MUTATIONS))](content, rng)
    return content


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    flipped = bytearray(content)
    for place in rng.integers(0, max(1, len(content)), size=rng.integers(1, 30)):
        flipped[place : place + 1] = bytes([rng.integers(256)])
    return bytes(flipped)


def _truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def _zero(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _block(content, rng)
    return content[:start] + bytes(end - start) + content[end:]


def _repeat(content: bytes, rng: np.random.Generator) -> bytes:
    """Duplicate a block, behind itself or over what follows it."""
    start, end = _block(content, rng)
    rest = content[end:] if rng.integers(2) else content[end + (end - start) :]
    return content[:end] + content[start:end] + rest


def _block(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Choose a block: a page of a database, or any other."""
    if rng.integers(2):
        start = int(rng.integers(len(content) // _LARGEST_BLOCK + 1)) * _LARGEST_BLOCK
        return start, min(len(content), start + _LARGEST_BLOCK)
    start = int(rng.integers(len(content) + 1))
    return start, min(len(content), start + int(rng.integers(1, _LARGEST_BLOCK)))


_MUTATIONS = (_flip, _truncate, _zero, _repeat)
