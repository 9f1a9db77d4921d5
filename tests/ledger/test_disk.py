"""Files are made whole or not at all, and a lock keeps other processes out."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from pdprivacy.ledger import disk

LOCKED = "import io, sys; from pdprivacy.ledger import disk; print(disk.lock(io.FileIO(sys.argv[1], 'a')))"


def locked_by_another(path) -> bool:
    """Return whether another process finds a file locked."""
    program = [sys.executable, "-W", "ignore", "-c", LOCKED, str(path)]
    return subprocess.check_output(program, text=True).strip() == "False"


def test_a_lock_keeps_other_files_and_processes_out_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    with io.FileIO(path, "a") as file, io.FileIO(path, "a") as other:
        assert disk.lock(file)
        assert not disk.lock(other)
        assert locked_by_another(path)
        disk.unlock(file)
        assert not locked_by_another(path)
        assert disk.lock(other)
    disk.unlock(file)  # which is closed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_released_lock_is_not_kept_by_a_process_that_inherited_the_file(tmp_path):
    path = tmp_path / "lock"
    with io.FileIO(path, "a") as file:
        assert disk.lock(file)
        start, end = os.pipe()
        child = os.fork()
        if not child:
            os.close(end)
            os.read(start, 1)  # until the parent is done
            os._exit(0)
        disk.unlock(file)
        with io.FileIO(path, "a") as other:
            assert disk.lock(other)
        os.close(end)
        os.waitpid(child, 0)
        os.close(start)


def test_a_draft_is_put_at_its_path_whole(tmp_path):
    path = tmp_path / "file"
    with disk.draft(str(path)) as name, open(name, "w") as file:
        file.write("first")
        assert not path.exists()
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["file"]


def test_a_draft_replaces_a_file_only_where_it_is_to(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(FileExistsError), disk.draft(str(path)) as name, open(name, "w") as file:
        file.write("new")
    assert path.read_text() == "before"
    with disk.draft(str(path), os.replace, f"{path}.new") as name, open(name, "w") as file:
        assert name == f"{path}.new"
        file.write("new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_draft_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(ZeroDivisionError), disk.draft(str(path)) as name, open(name, "w") as file:
        file.write(str(1 / 0))
    assert os.listdir(tmp_path) == []


def test_drafts_that_a_crash_left_are_swept_and_nothing_else(tmp_path):
    path = str(tmp_path / "budget.db")
    with disk.draft(path) as name:
        open(name, "w").close()
    left = name[:-32] + 32 * "f"
    others = {f"{path}-new-", f"{path}-new-12", f"{tmp_path}/another.db-new-1-{32 * 'a'}", f"{left}x"}
    for file in (left, *others):
        open(file, "w").close()
    disk.sweep(path)
    assert {entry.path for entry in os.scandir(tmp_path)} == others | {path}


def test_a_file_system_without_hard_links_keeps_what_is_there(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"
    for content in ("first", "second"):
        try:
            with disk.draft(str(path)) as name, open(name, "w") as file:
                file.write(content)
        except FileExistsError:
            assert content == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["file"]


def test_files_and_folders_are_made_durable(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    (tmp_path / "file").write_text("content")
    disk.sync(tmp_path / "file")
    disk.sync(tmp_path)
    assert synced == [os.stat(tmp_path / "file").st_ino, os.stat(tmp_path).st_ino]
    with pytest.raises(FileNotFoundError):
        disk.sync(tmp_path / "missing")
