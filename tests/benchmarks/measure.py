"""Run one command and print, as JSON, what it cost. A process of its own so that the numbers are clean.

A child's peak memory starts at that of the process which started it, so the starter must be small: run
this file with `python -I -S`. What remains is a floor of about 10 MB under `largest`.

    python -I -S measure.py LOG COMMAND [ARG...]

The command's output goes into LOG. Knows nothing of graphs and tools.
"""

import os
import select
import sys
from time import perf_counter

SAMPLE_EVERY_MS = 50


def peak_so_far(pid: int) -> int:
    """Return the most memory, in KiB, that the process itself has used; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def watch(pid: int) -> int:
    """Wait for the end of the process, and return its own peak memory in KiB."""
    if not hasattr(os, "pidfd_open"):
        return 0
    end = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(end, select.POLLIN)
    peak = 0
    while not poll.poll(SAMPLE_EVERY_MS):
        peak = max(peak, peak_so_far(pid))
    os.close(end)
    return peak


def main() -> None:
    """Run the command of the command line and print its numbers."""
    log, *command = sys.argv[1:]
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    start = perf_counter()
    pid = os.posix_spawnp(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ],
    )
    own = watch(pid)
    _, status, usage = os.wait4(pid, 0)
    wall = perf_counter() - start
    largest = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    print(
        f'{{"exit": {os.waitstatus_to_exitcode(status)}, "wall": {wall:.6f},'
        f' "cpu": {usage.ru_utime + usage.ru_stime:.6f}, "largest": {largest}, "own": {own}}}'
    )


if __name__ == "__main__":
    main()
