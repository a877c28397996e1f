"""Snakemake logger that prints one line per finished step, with its duration and the estimated time left.

All profiles select it. With ``--dry-run``, ``--verbose`` or ``--printshellcmds``, Snakemake's own output appears instead, and
the notes of the steps.
"""

import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from logging import WARNING, LogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_steps.arguments import hide_the_default_profile
from snakemake_logger_plugin_steps.expected import Expected

#: Number of lines shown of a failed job's log.
TAIL = 25
#: Beginning of the lines of a job's log that are shown below its step (replication.files.notes).
NOTE = "note: "
#: First line of a traceback's part in an installed package or a command of the environment.
FRAME = re.compile(r'  File "[^"]*(/site-packages/|/lib/python3|/bin/|<frozen )')
#: Beginnings of Snakemake's informational messages that are passed on.
PASSED_ON = ("Nothing to be done",)
#: Parts of Snakemake's errors, and what is printed instead: what happened in this repository and what to do.
INSTEAD = {
    "Target rules may not contain wildcards": (
        "error: ask for a figure or table by its own name, such as: snakemake --cores 1 fig04;"
        " snakemake --list-rules lists all names"
    ),
    "Directory cannot be locked": (
        "error: another run is active in this folder; wait until it has ended, or run in another checkout"
    ),
}

hide_the_default_profile()


class LogHandler(LogHandlerBase):
    """Log handler that prints steps as they end.

    The class attributes tell Snakemake that it writes to the terminal and formats its records itself.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.total = self.done = 0
        self.begun: dict[int, tuple[float, LogRecord]] = {}
        self.expected = Expected(Path.cwd())
        self.report = None
        self.plain = None
        self.interrupted = self.closed = False
        _on_interrupt(self._interrupted)
        if settings.dryrun or settings.verbose or settings.debug_dag or settings.printshellcmds:
            self.plain = _snakemake_handler(settings)

    def emit(self, record: LogRecord) -> None:
        """Print a line for a record, if it starts the run, ends a step, reports an error or is a warning."""
        if self.plain is not None:
            if self.plain.filter(record):
                self.plain.emit(record)
            event = getattr(record, "event", None)
            if event == LogEvent.JOB_INFO:
                self._begins(record)
            elif event == LogEvent.JOB_FINISHED and record.job_id in self.begun:
                self._say_notes(self.begun.pop(record.job_id)[1])
            return
        if profile := getattr(record, "profile", ""):
            self.expected.read(profile)
            self.report = Path("results", profile, "report.html")
            return
        event = getattr(record, "event", None)
        if self.interrupted and event != LogEvent.JOB_FINISHED:
            return  # The interrupt ended the jobs, which Snakemake reports as errors.
        handler = {
            LogEvent.RUN_INFO: self._run,
            LogEvent.JOB_INFO: self._begins,
            LogEvent.JOB_FINISHED: self._ends,
            LogEvent.JOB_ERROR: self._failed,
        }.get(event)
        if handler is not None:
            handler(record)
        elif record.levelno >= WARNING or record.getMessage().startswith(PASSED_ON):
            message = record.getMessage()
            self._say(next((line for part, line in INSTEAD.items() if part in message), message))
            if record.getMessage().startswith(PASSED_ON) and self.report is not None and self.report.exists():
                self._say(f"report     {self.report}")

    def _run(self, record: LogRecord) -> None:
        counts = Counter({rule: count for rule, count in record.stats.items() if rule != "total"})
        self.total = counts.total()
        self.expected.begin(counts)
        self._say(", ".join(filter(None, [f"{self.total} steps", self.expected.left()])))

    def _begins(self, record: LogRecord) -> None:
        self.begun[record.jobid] = (time.monotonic(), record)

    def _ends(self, record: LogRecord) -> None:
        start, job = self.begun.pop(record.job_id, (None, None))
        if job is None:
            return
        seconds = time.monotonic() - start
        self.done += 1
        self.expected.ended(job.rule_name, seconds)
        left = self.expected.left() if self.done < self.total else ""
        number = f"{self.done:>{len(str(self.total))}}/{self.total}"
        self._say(f"{number} {seconds:6.1f} s  {_named(job):<70} {left}".rstrip())
        self._say_notes(job, f"{'':>{len(number)}}           ")

    def _say_notes(self, job: LogRecord, indent: str = "") -> None:
        for note in _notes(job.log or []):
            self._say(f"{indent}{note}")

    def _failed(self, record: LogRecord) -> None:
        _, job = self.begun.pop(record.jobid, (None, None))
        self._say(f"Failed: {_named(job) if job else record.rule_name}")
        for log in record.log or []:
            self._say(f"The end of {log}:")
            try:
                text = Path(log).read_bytes().decode(errors="replace").removesuffix("\n")
                # Of a progress bar, which returns to the start of its line, only the last state counts.
                lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
            except OSError as error:
                lines = [str(error)]
            for line in _without_packages(lines)[-TAIL:]:
                self._say(f"  {line}")

    def _interrupted(self) -> None:
        self.interrupted = True

    def _say(self, text: str) -> None:
        print(text, file=sys.stdout if self.common_settings.stdout else sys.stderr, flush=True)

    def close(self) -> None:
        """Store the durations for the profile's next run."""
        self.expected.write()
        if self.interrupted and not self.closed:
            self._say("Interrupted; run again to continue.")
        self.closed = True
        super().close()


def _notes(logs: Iterable[str]) -> list[str]:
    """Return the notes in a finished job's log files."""
    texts = [Path(log).read_text(encoding="utf-8", errors="replace") for log in logs if Path(log).exists()]
    return [line for text in texts for line in text.splitlines() if line.startswith(NOTE)]


def _without_packages(lines: list[str]) -> list[str]:
    """Return a log without the parts of tracebacks in installed packages, such as twenty lines of papermill."""
    kept, within = [], False
    for line in lines:
        within = bool(FRAME.match(line)) or (within and line.startswith("    "))
        if not within:
            kept.append(line)
    return kept


def _on_interrupt(action: Callable[[], None]) -> None:
    """Call a function when the user interrupts the run, before the handler that is set already."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return

    def handle(number: int, frame: object) -> None:
        action()
        before(number, frame)

    signal.signal(signal.SIGINT, handle)


def _named(job: LogRecord) -> str:
    """Return the rule's message, or its name if it has none."""
    return job.rule_msg or job.rule_name


def _snakemake_handler(settings):
    """Return Snakemake's own handler."""
    from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

    options = (settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds)
    formatter = DefaultFormatter(settings.quiet, settings.show_failed_logs)
    stream = sys.stdout if settings.stdout else sys.stderr
    return ColorizingTextHandler(settings.nocolor, stream, formatter, DefaultFilter(*options))
