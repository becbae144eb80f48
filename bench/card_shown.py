# SPDX-License-Identifier: Apache-2.0
"""Finds the most memory that nvidia-smi shows for a running program. Polls NVML, the library behind nvidia-smi."""
import collections
import pathlib
import statistics
import threading
import time

LOOKS_EVERY = 0.02  # seconds
SHARE = 0.02  # of the time at most, because the program's own driver calls wait during a look
# How the bytes were measured, the most reliable way first. OWN: NVML lists the process by its pid here. ONLY: it lists
# one new process, under another pid (that of a container's host). CARD: it lists none, so the used bytes beyond those
# used before count.
OWN, ONLY, CARD = WAYS = ("own entry", "only entry", "card's used bytes")


class Card:
    """The card with this number, counted as with CUDA_DEVICE_ORDER=PCI_BUS_ID."""

    def __init__(self, number: int):
        import pynvml  # from the package nvidia-ml-py
        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(number)

    def used(self) -> int:
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def processes(self) -> list[tuple[int, int]]:
        """Returns pid and bytes of each process with a context; omits those whose bytes NVML does not know."""
        listed = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return [(one.pid, one.usedGpuMemory) for one in listed if one.usedGpuMemory is not None]

    def words(self) -> str:
        """Returns the card's name, memory and driver, for the head of a report."""
        def text(told) -> str:
            return told.decode() if isinstance(told, bytes) else told
        memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total
        return (f"{text(self._nvml.nvmlDeviceGetName(self._handle))}, {memory / (1 << 30):.1f} GiB, "
                f"driver {text(self._nvml.nvmlSystemGetDriverVersion())}")


def descends(pid: int, root: int) -> bool:
    """Returns whether `pid` is `root` or its descendant."""
    while pid not in (root, 0):
        try:
            # The fields after the name, which may contain anything: state, then the parent.
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return False
    return pid == root


class Watch:
    """Polls the card while the context is entered. `card` is a Card, `root` the program's process or one that started
    it."""

    def __init__(self, card, root: int, strangers: set[int], before: int):
        """`strangers` are the processes on the card before the program began, `before` the bytes used then."""
        self._card, self._root, self._strangers, self._before = card, root, strangers, before
        self._most: dict[str, int] = collections.defaultdict(int)
        self._took: list[float] = []
        self.failed = ""  # why the last look saw nothing
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def most(self) -> tuple[int, str]:
        """Returns the peak bytes, and the way in which they were measured."""
        way = next((way for way in WAYS if self._most[way] > 0), CARD)
        return self._most[way], way

    def look_seconds(self) -> float | None:
        return statistics.median(self._took) if self._took else None

    def look(self) -> None:
        listed = [(pid, held) for pid, held in self._card.processes() if pid not in self._strangers]
        own = [held for pid, held in listed if descends(pid, self._root)]
        if own:
            self._see(OWN, max(own))
        elif len({pid for pid, _ in listed}) == 1:
            self._see(ONLY, max(held for _, held in listed))
        self._see(CARD, self._card.used() - self._before)

    def _see(self, way: str, held: int) -> None:
        self._most[way] = max(self._most[way], held)

    def _look_on(self) -> None:
        pause = LOOKS_EVERY
        while not self._done.wait(pause):
            began = time.perf_counter()
            try:
                self.look()
            except Exception as error:  # NVML's own error type, which cannot be named before pynvml is imported
                self.failed = str(error)
            self._took.append(time.perf_counter() - began)
            pause = max(LOOKS_EVERY, self._took[-1] / SHARE)
