"""Run a command as a stage of a make target: say what it is and, every few seconds, how far it is.

Usage: python tools/stage.py LOG "1/3 compile" command ...: the title, then a line now and again with the seconds so far
and the last line that the command wrote; all of it is in LOG, and printed where the command fails.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

EVERY = 5.0  # seconds between two lines
WIDTH = 100  # characters of a line


def last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    whole = [line.strip() for line in lines if line.strip()]
    return whole[-1][:WIDTH] if whole else ""


def report(log: Path, done: threading.Event) -> None:
    start, said = time.monotonic(), ""
    while not done.wait(EVERY):
        line = last_line(log)
        if line != said:
            print(f"    {time.monotonic() - start:4.0f} s  {line}", flush=True)
            said = line


def main(log: Path, title: str, command: list[str]) -> int:
    """Run the command; its exit status is returned."""
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"[{title}]", flush=True)
    start, done = time.monotonic(), threading.Event()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        watch = threading.Thread(target=report, args=(log, done), daemon=True)
        watch.start()
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            status = process.wait() or 130
        done.set()
        watch.join()
    if status:
        sys.stderr.write(log.read_text("utf-8", "replace"))
        print(f"[{title}: failed with status {status}; the text above is in {log}]", flush=True)
    else:
        print(f"[{title}: {time.monotonic() - start:.0f} s]", flush=True)
    return status


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
