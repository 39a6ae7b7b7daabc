"""The summary of the benchmark results: computed from the tables of the benchmarks, and up to date."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "results", raising=False)
    import results

    return results


def test_the_summary_is_that_of_the_tables(results):
    assert results.summary(results.Results(FOLDER / "results")) in (FOLDER / "RESULTS.md").read_text(encoding="utf-8")


def test_every_command_is_that_of_a_benchmark_and_its_page_has_its_name(results):
    for page in (FOLDER / "results").glob("*.md"):
        outputs = results.OUTPUT.findall(page.read_text(encoding="utf-8"))
        assert outputs
        assert {name for _, name, _, _ in outputs} == {page.stem}
        assert (FOLDER / f"{page.stem}.py").exists()
        assert "RESULTS.md" in page.read_text(encoding="utf-8")


def test_a_table_is_found_by_its_heading_or_by_its_first_cell(results, tmp_path):
    (tmp_path / "speed.md").write_text(
        "### Fit\n\n| contender | × faster than peer |\n|---|---|\n| ours | 12.34 |\n\n"
        "| csv, 3 MB | seconds |\n|---|---|\n| fit | 1,234 |\n"
    )
    found = results.Results(tmp_path)
    assert found.times("speed", "Fit", "ours") == "12.3 ×"
    assert found.figure("speed", "csv, 3 MB", "fit", "seconds") == 1234
    with pytest.raises(KeyError, match=r"no row 'theirs'; it has \['ours'\]"):
        found.figure("speed", "Fit", "theirs", "faster")
