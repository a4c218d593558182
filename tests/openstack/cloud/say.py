"""Progress on stderr."""
import sys
import time

_STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)
