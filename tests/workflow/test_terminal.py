"""What a run says: a line a step, minutes left by time, and of a failure the end of its log."""

import logging
import os
from collections import Counter
from types import SimpleNamespace

import pytest
import yte
from snakemake.exceptions import LockException, WorkflowError
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_steps import LogHandler, expected
from snakemake_logger_plugin_steps.home import use_writable_home

from replication.files.paths import ROOT
from workflow.ending import ending

SETTINGS = {
    "stdout": True,
    "dryrun": False,
    "verbose": False,
    "debug_dag": False,
    "printshellcmds": False,
    "quiet": None,
}


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr("time.monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def handler(tmp_path, monkeypatch, clock, capsys):
    (tmp_path / "workflow/seconds").mkdir(parents=True)
    (tmp_path / "workflow/seconds/demo.json").write_text('{"long": 600, "short": 60}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    handler = LogHandler(SimpleNamespace(**SETTINGS, nocolor=True, show_failed_logs=True), None)
    say(handler, text="Profile demo", profile="demo")
    return handler


def say(handler, event=None, text="", level=logging.INFO, **fields):
    record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    vars(record).update(fields, event=event)
    handler.emit(record)


def job(handler, number, rule, text=""):
    say(handler, LogEvent.JOB_INFO, jobid=number, rule_name=rule, rule_msg=text, log=[])


def test_steps_are_told_as_they_end_with_minutes_that_follow_time(handler, clock, capsys):
    say(handler, LogEvent.RUN_INFO, stats={"long": 2, "short": 2, "total": 4})
    job(handler, 1, "long", "Train the model")
    job(handler, 2, "short")
    clock.seconds += 30
    say(handler, LogEvent.JOB_FINISHED, job_id=2)  # half as long as expected
    clock.seconds += 270
    say(handler, LogEvent.JOB_FINISHED, job_id=1)  # as was the other
    say(handler, LogEvent.SHELLCMD, "replicate train")
    assert [line.split("  ") for line in map(" ".join, map(str.split, capsys.readouterr().out.splitlines()))] == [
        ["4 steps, about 22 min left"],
        ["1/4 30.0 s short about 10 min left"],
        ["2/4 300.0 s Train the model about 5 min left"],
    ]


def test_notes_of_a_step_are_shown_below_it(handler, tmp_path, capsys):
    (tmp_path / "step.log").write_text("a line\nnote: 3 of 400 pairs are left out\n")
    say(handler, LogEvent.RUN_INFO, stats={"long": 1, "total": 1})
    say(handler, LogEvent.JOB_INFO, jobid=1, rule_name="long", rule_msg="Train", log=[str(tmp_path / "step.log")])
    say(handler, LogEvent.JOB_FINISHED, job_id=1)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()][2:] == ["note: 3 of 400 pairs are left out"]


@pytest.mark.parametrize("option", ["verbose", "printshellcmds"])
def test_notes_are_shown_with_snakemakes_own_output_too(tmp_path, capsys, option):
    (tmp_path / "step.log").write_text("note: 3 of 400 pairs are left out\n")
    settings = SimpleNamespace(**SETTINGS | {option: True}, nocolor=True, show_failed_logs=True)
    handler = LogHandler(settings, None)
    fields = {
        "rule_name": "long",
        "rule_msg": "Train",
        "log": [str(tmp_path / "step.log")],
        "threads": 1,
        "priority": 0,
    }
    fields |= {"input": [], "output": [], "reason": "", "resources": {}, "local": False, "is_checkpoint": False}
    say(handler, LogEvent.JOB_INFO, jobid=1, **fields)
    say(handler, LogEvent.JOB_FINISHED, job_id=1)
    assert "\nnote: 3 of 400 pairs are left out\n" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(ROOT.glob("profiles/*/config.yaml")), ids=lambda path: path.parent.name)
def test_every_profile_selects_this_logger_and_so_shows_notes(path):
    assert yte.process_yaml(path.read_text())["logger"] == "steps"


def test_the_next_run_of_the_profile_knows_what_this_one_took(handler, clock, tmp_path):
    say(handler, LogEvent.RUN_INFO, stats={"long": 1})
    job(handler, 1, "long")
    clock.seconds += 120
    say(handler, LogEvent.JOB_FINISHED, job_id=1)
    handler.close()
    assert told_at_the_start(tmp_path, "demo", long=2) == "about 4 min left"
    assert told_at_the_start(tmp_path, "local", long=2) == "at least about 20 min left"
    assert told_at_the_start(tmp_path, "local", other=2) == ""


def told_at_the_start(folder, profile, **counts):
    run = expected.Expected(folder)
    run.read(profile)
    run.begin(Counter(counts))
    return run.left()


def test_a_profile_that_never_ran_has_a_lower_bound_from_the_default_one(handler, clock, capsys):
    say(handler, text="Profile local", profile="local")
    say(handler, LogEvent.RUN_INFO, stats={"long": 1, "short": 2, "training": 1, "total": 4})
    for number, rule, seconds in [(1, "short", 60), (2, "long", 120), (3, "training", 600)]:
        job(handler, number, rule)
        clock.seconds += seconds
        say(handler, LogEvent.JOB_FINISHED, job_id=number)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "4 steps, at least about 12 min left",
        "1/4 60.0 s short at least about 11 min left",
        "2/4 120.0 s long at least about a minute left",
        "3/4 600.0 s training about a minute left",
    ]


def test_a_rule_without_a_duration_takes_as_long_as_another_of_its_command(handler, clock, capsys):
    rules = {"train__3": 1, "train__10": 1, "train__11": 1, "short": 1}
    say(handler, LogEvent.RUN_INFO, stats=rules | {"total": 4})
    job(handler, 1, "train__3")
    clock.seconds += 600
    say(handler, LogEvent.JOB_FINISHED, job_id=1)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "4 steps, at least about a minute left",
        "1/4 600.0 s train__3 about 21 min left",
    ]


def test_an_interrupt_is_no_failure_and_says_how_to_go_on(handler, tmp_path, capsys):
    (tmp_path / "a.log").write_text("50%|\r60%|\n")
    job(handler, 1, "long", "Train the model")
    handler._interrupted()
    say(handler, LogEvent.JOB_ERROR, level=logging.ERROR, jobid=1, rule_name="long", log=["a.log"])
    handler.close()
    assert capsys.readouterr().out == "Interrupted; run again to continue.\n"


def test_of_a_progress_bar_the_last_state_is_shown(handler, tmp_path, capsys):
    (tmp_path / "a.log").write_text(
        "started\n" + "".join(f"\r{share}%|" for share in range(100)) + "\nValueError: no\n"
    )
    job(handler, 1, "long")
    say(handler, LogEvent.JOB_ERROR, level=logging.ERROR, jobid=1, rule_name="long", log=["a.log"])
    assert capsys.readouterr().out.splitlines()[2:] == ["  started", "  99%|", "  ValueError: no"]


def test_of_a_failure_the_end_of_the_log_is_shown(handler, tmp_path, capsys):
    (tmp_path / "a.log").write_text("\n".join(f"line {number}" for number in range(100)))
    job(handler, 1, "long", "Train the model")
    say(
        handler,
        LogEvent.JOB_ERROR,
        "Error in rule long",
        logging.ERROR,
        jobid=1,
        rule_name="long",
        log=["a.log", "none.log"],
    )
    said = capsys.readouterr().out
    assert "Failed: Train the model\nThe end of a.log:\n  line 75\n" in said
    assert "line 74" not in said
    assert "No such file" in said


def test_of_a_failure_the_parts_in_packages_are_left_out(handler, tmp_path, capsys):
    log = """Executing notebook with kernel: python3
Traceback (most recent call last):
  File "/a/.venv/bin/papermill", line 8, in <module>
    sys.exit(papermill())
             ^^^^^^^^^^^
  File "/a/.venv/lib/python3.11/site-packages/papermill/execute.py", line 251, in raise_for_execution_errors
    raise error
  File "/a/replication/results/measurements.py", line 3, in read
    return read_table(path)
OSError: [Errno 28] No space left on device
"""
    (tmp_path / "a.log").write_text(log)
    job(handler, 1, "figure", "Draw the figure")
    say(handler, LogEvent.JOB_ERROR, level=logging.ERROR, jobid=1, rule_name="figure", log=["a.log"])
    assert [line[2:] for line in capsys.readouterr().out.splitlines()[2:]] == [
        "Executing notebook with kernel: python3",
        "Traceback (most recent call last):",
        '  File "/a/replication/results/measurements.py", line 3, in read',
        "    return read_table(path)",
        "OSError: [Errno 28] No space left on device",
    ]


def test_warnings_and_that_there_is_nothing_to_do_are_passed_on_and_no_more(handler, capsys):
    say(handler, None, "Select jobs to execute...")
    say(handler, None, "Nothing to be done (all requested files are present and up to date).")
    say(handler, None, "a warning", logging.WARNING)
    assert capsys.readouterr().out.splitlines() == [
        "Nothing to be done (all requested files are present and up to date).",
        "a warning",
    ]


@pytest.mark.parametrize(
    ("exception", "said"),
    [
        (LockException(), "error: another run is active in this folder; wait"),
        (
            WorkflowError("Target rules may not contain wildcards. Please specify concrete files"),
            "error: ask for a figure or table by its own name",
        ),
    ],
)
def test_snakemakes_errors_are_told_in_one_line(handler, capsys, exception, said):
    say(handler, LogEvent.ERROR, f"{type(exception).__name__}:\n{exception}", logging.ERROR)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(said)


def test_a_run_ends_with_its_verdicts_and_where_to_look(tmp_path):
    (tmp_path / "claims.csv").write_text("id,verdict,data\na,holds,real\nb,fails,real\nc,holds,real\n")
    (tmp_path / "report.html").touch()
    made = (tmp_path / "report.html").stat().st_mtime
    assert ending(tmp_path, made - 1).splitlines()[1] == "3 claims: 2 holds, 1 fails"
    assert f"report     {tmp_path}/report.html" in ending(tmp_path, made - 1)
    assert ending(tmp_path, made + 1) == ""
    (tmp_path / "claims.csv").write_text(
        "id,verdict,data\na,holds,real\nb,fails,generated\nc,holds,\nd,untested,generated\n"
    )
    expected = "4 claims: 2 holds, 1 fails, 1 untested; 1 on generated pictures, a demonstration"
    assert ending(tmp_path, made - 1).splitlines()[1] == expected
    assert ending(tmp_path / "none", 0) == ""


def test_where_nothing_is_to_be_done_the_report_is_named(handler, tmp_path, capsys):
    (tmp_path / "results/demo").mkdir(parents=True)
    say(handler, text="Nothing to be done (all requested files are present and up to date).")
    assert "report.html" not in capsys.readouterr().out
    (tmp_path / "results/demo/report.html").touch()
    say(handler, text="Nothing to be done (all requested files are present and up to date).")
    assert capsys.readouterr().out.endswith("report     results/demo/report.html\n")


def test_a_home_that_is_read_only_is_replaced_for_the_run(tmp_path, monkeypatch):
    """Snakemake ended in a traceback."""
    monkeypatch.setenv("HOME", "/proc/none")
    monkeypatch.delenv("HF_HOME", raising=False)
    use_writable_home(tmp_path / "home")
    assert os.environ["HOME"] == str(tmp_path / "home")
    assert os.environ["HF_HOME"] == "/proc/none/.cache/huggingface"
    use_writable_home(tmp_path / "another")
    assert os.environ["HOME"] == str(tmp_path / "home")
