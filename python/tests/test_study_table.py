"""Measurements of a study as a table, with and without pandas."""

import sys
from pathlib import Path

import pytest

import weir

TABLE = """variant,workers,round,load,rate_per_s,p50_ms,trusted,failure
a,1,1,main,812.5,3.25,True,
a,2,1,main,1600,,False,
b,1,1,,,,False,"it ended, in the middle"
"""


def results(folder: Path) -> weir.Study:
    (folder / "measurements.csv").write_text(TABLE)
    return weir.Study.read(folder)


def test_a_row_is_a_measurement_and_what_was_not_measured_is_none(tmp_path: Path) -> None:
    study = results(tmp_path)
    first, second, failed = study.rows
    assert (first["variant"], first["workers"], first["p50_ms"], first["trusted"]) == ("a", 1, 3.25, True)
    assert (second["rate_per_s"], second["p50_ms"], second["failure"]) == (1600, None, None)
    assert (failed["load"], failed["rate_per_s"], failed["failure"]) == (None, None, "it ended, in the middle")
    assert "3 rows" in repr(study)


def test_a_data_frame_has_nan_where_nothing_was_measured(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = results(tmp_path).to_pandas()
    assert list(frame["rate_per_s"].dropna()) == [812.5, 1600.0]
    assert pandas.isna(frame["p50_ms"][1])
    assert frame.groupby("variant")["p50_ms"].mean()["a"] == 3.25


def test_a_folder_without_results_and_a_machine_without_pandas_are_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(weir.UsageError, match="results folder of 'weir study'"):
        weir.Study.read(tmp_path)
    study = results(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        study.to_pandas()
