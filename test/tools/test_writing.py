# SPDX-License-Identifier: Apache-2.0
"""Files and folders are written completely or not at all."""

import errno
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from paths import contents

from eom_dynamics.tools.writing import TEMPORARY, FolderError, check_folder, whole_file, write_file, write_folder

FILES = {"README.md": b"read", "c/a.c": b"new", "c/b.c": b"also new"}


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """A disk with room for one and a half files."""
    written: list[Path] = []
    write = Path.write_bytes

    def write_bytes(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) == 1:
            return write(path, data)
        write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    with whole_file(tmp_path / "new/file", force=False) as temporary:
        temporary.write_bytes(b"whole")
        assert not (tmp_path / "new/file").exists()
    assert contents(tmp_path) == {"new/file": b"whole"}
    with pytest.raises(FolderError, match=r"exists already.*--force"), whole_file(tmp_path / "new/file", force=False):
        pass
    with pytest.raises(FolderError, match="not a file"), whole_file(tmp_path / "new", force=True):
        pass
    with suppress(ZeroDivisionError), whole_file(tmp_path / "new/file", force=True) as temporary:
        temporary.write_bytes(b"half")
        raise ZeroDivisionError
    assert contents(tmp_path) == {"new/file": b"whole"}


def test_fills_an_empty_folder_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_folder(tmp_path / "link", FILES, force=False)
    assert contents(tmp_path / "real") == FILES


def test_refuses_paths_that_are_not_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("file", "dangling"):
        for force in (False, True):
            with pytest.raises(FolderError, match="not a folder"):
                write_folder(tmp_path / name, FILES, force=force)


def test_force_overwrites_files_of_the_same_name_and_keeps_others(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "x"
    write_folder(folder, {"c/a.c": b"old", "c/mine.c": b"mine"}, force=False)
    with pytest.raises(FolderError, match=r"not empty.*--force"):
        write_folder(folder, FILES, force=False)
    assert contents(folder) == {"c/a.c": b"old", "c/mine.c": b"mine"}
    write_folder(folder, FILES, force=True)
    assert contents(folder) == {**FILES, "c/mine.c": b"mine"}


@pytest.mark.parametrize("before", [None, {}, {"c/a.c": b"old"}], ids=["new", "empty", "forced"])
def test_a_full_disk_changes_nothing(before: dict[str, bytes] | None, tmp_path: Path, request) -> None:
    folder = tmp_path / "x"
    if before is not None:
        folder.mkdir()
        write_folder(folder, before, force=False)
    request.getfixturevalue("full_disk")
    with pytest.raises(FolderError, match="device"):
        write_folder(folder, FILES, force=bool(before))
    assert contents(folder) == (before or {})
    assert list(tmp_path.iterdir()) == ([] if before is None else [folder])


@pytest.mark.parametrize("name", ["file/x", "file/x/y"])
def test_a_path_that_cannot_be_written_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for write in (check_folder, partial(write_folder, files=FILES), partial(write_file, content=b"")):
        with pytest.raises(FolderError, match=rf"{name}: cannot be written: .*/file is not a folder$"):
            write(tmp_path / name, force=False)


def test_folders_of_the_user_stay_whatever_their_names_and_age(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "out"):
        write_folder(place / f"{TEMPORARY}notes", {"mine": b"mine"}, force=False)
        os.utime(place / f"{TEMPORARY}notes", (1.0, 1.0))
    before = contents(tmp_path)
    write_folder(tmp_path / "out", {"a": b""}, force=True)
    write_folder(tmp_path / "new", {"b": b""}, force=False)
    assert contents(tmp_path) == {**before, "out/a": b"", "new/b": b""}
