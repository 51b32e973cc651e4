"""What a run shows while it goes on: in a terminal a live view, else one plain line for each event."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taskgraph.cli import console
from taskgraph.core.graph import Event
from taskgraph.report.summary import line, settle, span, tail
from taskgraph.store import layout

if TYPE_CHECKING:
    from taskgraph.runner.tick import Run

_REFRESH = 0.125
_MOST_ROWS = 12


class Progress:
    """Hears the events of a run and shows them.

    Args:
        quiet: whether to show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._run: Run | None = None
        self._live: Any = None
        self._view: LiveView | None = None
        self._lines: list[str] = []

    @contextmanager
    def showing(self, run: Run) -> Iterator[None]:
        """Show a run while it goes on."""
        self._run = run
        if self.quiet:
            yield
            return
        if not console.messages_to_terminal():
            run.on_tick = self.flush
            try:
                yield
            finally:
                self.flush()
            return
        self._view = LiveView(run)
        with self._view.drawn() as self._live:
            run.on_tick = self._view.refresh
            yield

    def event(self, event: Event) -> None:
        """Show one event."""
        if self.quiet or self._run is None:
            return
        text = line(self._run.graph, event)
        if text is None:
            return
        text = console.clean(text)
        if self._view is None:
            self._lines.append(text)
        elif event["event"] != "started":
            self._view.print(text)

    def flush(self) -> None:
        """Write the lines of a step, in one go."""
        if self._lines:
            console.note("\n".join(self._lines))
            self._lines.clear()


class LiveView:
    """The live view: what runs, for how long, its last line; counts, and an estimate of what is left.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        from rich.console import Console

        self.run = run
        self.console = Console(
            file=console.lasting(sys.stderr), highlight=False, no_color=not console.messages_coloured()
        )  # fmt: skip
        self.began = time.monotonic()
        self._next = 0.0
        self._live: Any = None

    def drawn(self) -> Any:
        """The rich live display."""
        from rich.live import Live

        self._live = Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=False,
                          redirect_stderr=False)  # fmt: skip
        return self._live

    def print(self, text: str) -> None:
        """A line above the live part."""
        from rich.text import Text

        self._live.console.print(Text(text), soft_wrap=True)

    def refresh(self) -> None:
        """Draw afresh, if the last time is a while ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _REFRESH
            self._live.update(self._draw(now), refresh=True)

    def _draw(self, now: float) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        def cell(text: str, style: str) -> Text:
            return Text(text, style=style, no_wrap=True, overflow="ellipsis")

        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, justify="right")
        table.add_column()
        table.add_column()
        graph = self.run.graph
        rows = list(self.run.watched.items.values())
        for each in rows[:_MOST_ROWS]:
            task = graph.tasks.get(each.task)
            title = console.clean(f"{each.task} {(task.name or task.subject) if task is not None else ''}")
            last = tail(layout.log_path(self.run.root, each.task, each.attempt), 1)
            line = console.clean(settle(last[-1])) if last else ""
            table.add_row(span(now - each.since), cell(title, "cyan"), cell(line, "dim"))
        more = f", {len(rows) - _MOST_ROWS} of them not shown" if len(rows) > _MOST_ROWS else ""
        return Group(table, cell(self._counts(now, more), "bold"))

    def _counts(self, now: float, more: str) -> str:
        total, settled, failed = self.run.tally()
        words = [f"{settled}/{total} settled", f"{len(self.run.watched)} running{more}"]
        if failed:
            words.append(f"{failed} failed")
        done = self.run.attempts
        left = total - settled
        if done >= 3 and left:
            words.append(f"about {span((now - self.began) / done * left)} left")
        return ", ".join(words)
