"""Saved runs of load tests, against a list in memory."""

import random
from pathlib import Path

import pytest
from conftest import Service

import weir
from weir._load_test.saved_runs import SavedRuns

KEEP = 4


@pytest.fixture
def run(service: Service) -> weir.Run:
    return weir.load(service.url, connections=1, requests=10)


@pytest.mark.parametrize("seed", range(20))
def test_the_last_good_recording_is_that_of_a_list(run: weir.Run, tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    choose = random.Random(seed)
    saved = SavedRuns(tmp_path / "runs", KEEP)
    saved.prepare()
    # Folders, with the number of runs in each that can be read and whose test passed; 0 for all others.
    expected: dict[str, list[tuple[Path, int]]] = {"one_": [], "one/": []}
    for _ in range(60):
        load = choose.choice(list(expected))
        recordings = expected[load]
        match choose.choice(["save", "save", "save", "save", "good", "damage", "killed"]):
            case "save":
                good = [recording for recording in recordings if _is_marked(recording[0])][-1:]
                folder = saved.save("test.py::test", load, [run] * choose.randint(1, 3))
                kept = recordings[max(0, len(recordings) - KEEP + 1) :]
                recordings[:] = [*(recording for recording in good if recording not in kept), *kept, (folder, 0)]
            case "good" if recordings:
                folder, _ = recordings[-1]
                saved.mark_good(folder)
                recordings[-1] = (folder, len(list(folder.glob("*.json"))) if _is_whole(folder) else 0)
            case "damage" if recordings:
                number = choose.randrange(len(recordings))
                folder, _ = recordings[number]
                (folder / "1.json").write_text(choose.choice(["", "{", "[]", "null", '{"schema": 3}']))
                recordings[number] = (folder, 0)
            case "killed" if recordings:
                (recordings[0][0].with_name(".new-killed") / "1.json").parent.mkdir(exist_ok=True)
        for name, listed in expected.items():
            found, damaged = saved.last_good("test.py::test", name)
            good = [(folder, count) for folder, count in listed if count]
            assert (found and (found.folder, len(found.runs))) == (good[-1] if good else None)
            newer = listed[listed.index(good[-1]) + 1 :] if good else listed
            assert len(damaged) == sum(_is_marked(folder) for folder, _ in newer)
    on_disk = {path for path in (tmp_path / "runs").glob("*/*/*") if path.is_dir() and path.name[0] != "."}
    assert on_disk == {folder for listed in expected.values() for folder, _ in listed}
    assert all(mark.with_suffix("") in on_disk for mark in tmp_path.rglob("*.passed"))
    assert all(len(listed) <= KEEP + 1 for listed in expected.values())


def test_what_a_killed_process_left_is_removed(run: weir.Run, tmp_path: Path) -> None:
    saved = SavedRuns(tmp_path, KEEP)
    left = saved.save("test", "load", [run]).rename(tmp_path / "left")
    left = left.rename(saved.save("test", "load", [run]).with_name(".new-20260102T030405.678901-1"))
    saved.save("test", "load", [run])
    assert not left.exists()


def test_a_recording_that_was_removed_meanwhile_is_not_marked(run: weir.Run, tmp_path: Path) -> None:
    saved = SavedRuns(tmp_path, KEEP)
    folder = saved.save("test", "load", [run])
    moved = folder.rename(tmp_path / "elsewhere")
    saved.mark_good(folder)
    assert moved.is_dir()
    assert saved.last_good("test", "load") == (None, [])
    assert list(tmp_path.rglob("*.passed")) == []


def _is_marked(folder: Path) -> bool:
    return folder.with_name(f"{folder.name}.passed").exists()


def _is_whole(folder: Path) -> bool:
    return all(len(file.read_text()) > 100 for file in folder.glob("*.json"))
