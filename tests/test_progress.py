"""Long work under a bar: cancelled it leaves everything as it was, promptly, wherever it is; done it says what it did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from case_samples import SNAPSHOTS, everything

from benchmarks.changelog_data import generate
from widgets import progress
from widgets.live_messages import heard_meanwhile
from widgets.progress import CANCELLED, DONE, FAILED, Progress, watched
from workbench import Case
from workbench.model import Problem


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Progress]:
    """The bars that are made, in their order."""
    made: list[Progress] = []

    class Kept(Progress):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(progress, "Progress", Kept)
    return made


def cancel(bar: Progress) -> None:
    """As the page does, on a thread of its own."""
    pressed = threading.Thread(target=bar._heard, args=(bar, {"what": "cancel"}, None))
    pressed.start()
    pressed.join()


def cancelling(case: Case, bars: list[Progress], when: Callable[[int], bool]) -> Callable[..., Any]:
    """The load of a case during which somebody presses Cancel once so many rows are counted."""

    def load(folders: Any, progress: Any, **named: Any) -> Any:
        def counted(done: int, total: int, rows: int) -> None:
            if when(rows) and bars[0].data["state"] == "running":
                cancel(bars[0])
            progress(done, total, rows)

        return case.load(folders, progress=counted, **named)

    return load


def test_work_that_is_done_gives_its_result_and_says_what_it_did(tmp_path: Path, bars: list[Progress]) -> None:
    case = Case.create(tmp_path / "case")
    loaded = watched(case.load, SNAPSHOTS)
    assert len(loaded.added) == len(case.inputs) > 0
    assert bars[0].data["state"] == DONE
    assert bars[0].text().endswith(f"{len(loaded.added)} files read, {loaded.rows:,} rows; 0 files known already")
    assert watched(case.load, SNAPSHOTS).says.startswith("0 files read")


def test_a_cancelled_first_load_leaves_no_case(tmp_path: Path, bars: list[Progress]) -> None:
    case = Case.create(tmp_path / "case")
    with pytest.raises(Problem, match=r"^cancelled: nothing was changed$"):
        watched(cancelling(case, bars, lambda rows: rows > 0), SNAPSHOTS)
    assert not (tmp_path / "case").exists()
    assert (case.inputs, case.snapshots) == ([], {})
    assert bars[0].data["state"] == CANCELLED
    assert watched(case.load, SNAPSHOTS).added


def test_a_cancelled_load_leaves_a_case_as_it_was(tmp_path: Path, bars: list[Progress]) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    before = everything(case.folder)
    with pytest.raises(Problem, match="nothing was changed"):
        watched(cancelling(case, bars, lambda rows: rows > 0), SNAPSHOTS)
    assert everything(case.folder) == before
    assert case.inputs == Case.open(case.folder).inputs and list(case.snapshots) == [SNAPSHOTS[0].name]


def test_a_job_of_spark_is_ended_and_no_other(tmp_path: Path, spark: Any, bars: list[Progress]) -> None:
    folder = tmp_path / "collected"
    generate(folder, 300_000, servers=1)
    case, seen = Case.create(tmp_path / "case"), []
    jobs = spark.sparkContext.statusTracker()
    before = set(jobs.getJobIdsForGroup())

    def reading(rows: int) -> bool:
        seen.append(rows)
        return len(seen) > 3  # the job has begun, and has long not ended

    with pytest.raises(Problem, match="nothing was changed"):
        watched(cancelling(case, bars, reading), [folder], spark=spark)
    mine = [jobs.getJobInfo(one) for one in set(jobs.getJobIdsForGroup()) - before]
    assert "FAILED" in {one.status for one in mine if one}, "not waited for until it had done all"
    assert not (tmp_path / "case").exists()
    assert spark.range(10).count() == 10


def test_work_that_does_not_count_is_interrupted_where_it_is(
    bars: list[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_GRACE", 0.05)

    def stuck(progress: Any) -> None:
        cancel(bars[0])
        time.sleep(20)

    began = time.monotonic()
    with pytest.raises(Problem, match="nothing was changed"):
        watched(stuck)
    assert time.monotonic() - began < 5


def test_what_has_counted_all_is_not_ended_any_more(bars: list[Progress], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_GRACE", 0.0)

    def publishing(progress: Any) -> str:
        progress(5, 5, 1)
        cancel(bars[0])
        time.sleep(0.3)
        return "kept"

    assert watched(publishing) == "kept"
    assert "too late" in bars[0].notice and bars[0].data["state"] == DONE


def test_an_interrupt_at_the_end_is_not_called_nothing(bars: list[Progress]) -> None:
    def publishing(progress: Any) -> None:
        progress(5, 5, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(publishing)
    assert "nothing" not in bars[0].text()


def test_errors_of_the_work_come_out_as_they_are(tmp_path: Path, bars: list[Progress]) -> None:
    with pytest.raises(Problem, match="does not exist"):
        watched(Case.create(tmp_path / "case").load, [tmp_path / "no such folder"])
    assert bars[0].data["state"] == FAILED and "does not exist" in bars[0].text()

    def broken(progress: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watched(broken)


def test_a_load_says_that_all_is_read_before_it_publishes(tmp_path: Path) -> None:
    case, told = Case.create(tmp_path / "case"), []

    def progress(done: int, total: int, rows: int) -> None:
        told.append((done, total, (case.folder / "case.yaml").exists()))

    case.load(SNAPSHOTS, progress=progress)
    done, total, published = told[-1]
    assert done == total > 0 and not published


def test_a_click_goes_to_the_thread_that_the_page_sent_it_to() -> None:
    comm_module = pytest.importorskip("ipykernel.comm.comm")
    comm = comm_module.BaseComm.__new__(comm_module.BaseComm)
    comm._reply_subshell_lock, comm._reply_subshell_ids = threading.Lock(), {}
    comm._reply_subshell_id = None  # the running cell has drawn last
    assert comm._reply_subshell_for({}, "a subshell") is None, "then heard_meanwhile is not needed any more"

    heard_meanwhile(SimpleNamespace(comm=comm))
    assert comm._reply_subshell_for({}, "a subshell") == "a subshell"
    heard_meanwhile(SimpleNamespace(comm=None))
