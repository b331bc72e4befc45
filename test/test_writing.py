# SPDX-License-Identifier: Apache-2.0
"""Folders of exported files: all of them or none."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import pytest

from eom_dynamics.writing import ASIDE, FolderError, check_folder, sweep, whole_file, whole_folder, write_folder

FILES = {"README.md": b"read", "c/a.c": b"new", "c/b.c": b"also new"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has room for one file and a half."""
    written: list[Path] = []
    write = Path.write_bytes

    def write_bytes(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) == 1:
            return write(path, data)
        write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


def test_what_is_left_is_swept_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    left = tmp_path / f"{ASIDE}left/files"
    left.mkdir(parents=True)
    (left / "file").touch()
    with whole_folder(tmp_path / "out", force=False) as aside, whole_file(tmp_path / "lock", force=False) as file:
        file.touch()
        (aside / "file").touch()
        sweep(tmp_path)
        assert (aside / "file").exists() and file.exists() and not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "out"]
    assert contents(tmp_path) == {"out/file": b"", "lock": b""}


def test_makes_the_folder_and_those_above_it(tmp_path: Path) -> None:
    write_folder(tmp_path / "a" / "b", FILES, force=False)
    assert contents(tmp_path) == {f"a/b/{name}": content for name, content in FILES.items()}


def test_fills_an_empty_folder_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_folder(tmp_path / "link", FILES, force=False)
    assert contents(tmp_path / "real") == FILES


def test_refuses_what_is_not_empty_and_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    with pytest.raises(FolderError, match=r"not empty.*--force"):
        write_folder(tmp_path, FILES, force=False)
    assert contents(tmp_path) == {"mine": b"mine"}


@pytest.mark.parametrize("force", [False, True])
def test_refuses_what_is_no_folder(force: bool, tmp_path: Path) -> None:
    for name in ("file", "dangling"):
        path = tmp_path / name
        path.write_bytes(b"mine") if name == "file" else path.symlink_to("nowhere")
        with pytest.raises(FolderError, match="not a folder"):
            write_folder(path, FILES, force=force)


def test_force_writes_over_its_own_files_and_keeps_all_others(tmp_path: Path) -> None:
    write_folder(tmp_path / "x", {"c/a.c": b"old", "c/mine.c": b"mine"}, force=False)
    write_folder(tmp_path / "x", FILES, force=True)
    assert contents(tmp_path / "x") == {**FILES, "c/mine.c": b"mine"}


def test_what_fails_on_the_way_leaves_all_as_it_was(tmp_path: Path) -> None:
    write_folder(tmp_path, {"a": b"old"}, force=False)

    def fail() -> None:
        with whole_folder(tmp_path, force=True) as aside:
            (aside / "a").write_bytes(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert contents(tmp_path) == {"a": b"old"}


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_no_new_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="new: cannot be written: No space left on device"):
        write_folder(tmp_path / "new", FILES, force=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_changes_nothing_in_a_folder(force: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    before = {"c/a.c": b"old"} if force else {}
    if force:
        write_folder(tmp_path / "x", before, force=False)
    else:
        (tmp_path / "x").mkdir()
    request.getfixturevalue("full_disk")
    with pytest.raises(FolderError, match="x: cannot be written"):
        write_folder(tmp_path / "x", FILES, force=force)
    assert contents(tmp_path / "x") == before
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for check in (check_folder, partial(write_folder, files=FILES)):
        with pytest.raises(FolderError, match=r"file/x: cannot be written: "):
            check(tmp_path / "file" / "x", force=False)
