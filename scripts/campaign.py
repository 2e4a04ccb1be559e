"""Record presets of many studies within a time, several at once on one machine, and pack what there is.

    python scripts/campaign.py --minutes 8 --lanes 4 --device cuda --pack packed       # what `sandlab results` lists
    python scripts/campaign.py --minutes 8 --lanes 2 --device cuda nce/images flip-flop/mitigations

Each lane takes the next study of the list and runs it as `sandlab run` does, with what is left of the time as its
budget: what does not end in time stops at a checkpoint, and the same command goes on from there. What does not stop by
itself is made to: after 45 s it is asked, after 60 s ended, so that a campaign takes a minute more than its time at
most, and what packing takes. On a GPU the lanes share the chip through NVIDIA's MPS where it is installed. A study's
log is STORE/campaign/STUDY.log.

--pack FOLDER writes the store in parts of 15 MiB, of --most MiB together: finished studies first, then checkpoints and
the newest results of jobs, from which a later campaign goes on (what is left out is told; it is computed again). To
unpack into a store: cat FOLDER/studies.* | tar xz -C runs (likewise rest.*); then `sandlab publish STUDY` for each.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandlab.cli.studies import choose
from sandlab.lab._report.agenda import agenda

START = 10.0  # seconds until a run begins to count its time
GRACE = 45.0  # seconds after the end in which a run writes its checkpoint by itself
LAST = 15.0  # seconds more when it was asked to
LEAST = 15.0  # seconds below which nothing is begun
PART = 15 * 2**20
FINISHED = {0: "finished", 1: "finished, a claim fails"}


@dataclass(frozen=True)
class Ended:
    """One study's run: its exit code and seconds."""

    study: str
    code: int
    seconds: float

    def __str__(self) -> str:
        how = FINISHED.get(self.code, "time is up" if self.code == 5 else f"exit code {self.code}, see its log")
        return f"{self.study}: {how}, {self.seconds:.0f} s"


def main(words: Sequence[str] | None = None) -> int:
    """Run the list; 0 when every study is finished, 5 when some are not."""
    options = _options(words)
    studies = choose(options.studies) if options.studies else _due(options.preset, options.device)
    end = time.monotonic() + 60 * options.minutes
    with _shared_gpu(options):
        ended = _run(studies, options, end)
    finished = [each.study for each in ended if each.code in FINISHED]
    print(f"finished {len(finished)} of {len(studies)}", flush=True)
    if left := [study for study in studies if study not in finished]:
        print(f"left: {' '.join(left)}", flush=True)
    if options.pack:
        _pack(options.store, options.pack, round(options.most * 2**20))
    return 5 if left else 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help="in the order to begin them; none: what `sandlab results` lists")
    parser.add_argument("--preset", choices=("full", "quick", "null"), default="full")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--lanes", type=int, default=2, help="studies at once")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--store", type=Path, default=Path("runs"))
    parser.add_argument("--pack", type=Path, default=None, help="folder for the packed store")
    parser.add_argument("--most", type=float, default=60.0, help="MiB of all parts together, before they are packed")
    return parser.parse_args(words)


def _due(preset: str, device: str) -> list[str]:
    """Studies whose preset is missing or stale, most telling in a minute first."""
    return [row.study for row in agenda().due if row.preset == preset and row.device == device]


def _run(studies: Sequence[str], options: argparse.Namespace, end: float) -> list[Ended]:
    """All studies by lanes; those that time does not reach are not among the results."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for study in studies:
        waiting.put(study)
    ended: list[Ended] = []

    def lane() -> None:
        while end - time.monotonic() > LEAST:
            try:
                study = waiting.get_nowait()
            except queue.Empty:
                return
            ended.append(_run_one(study, options, end))
            print(ended[-1], flush=True)

    lanes = [threading.Thread(target=lane) for _ in range(min(options.lanes, len(studies)))]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    return ended


def _run_one(study: str, options: argparse.Namespace, end: float) -> Ended:
    begin = time.monotonic()
    log = options.store / "campaign" / f"{study}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    preset = [] if options.preset == "quick" else [f"--{options.preset}"]
    command = [sys.executable, "-m", "sandlab", "run", study, *preset, "--device", options.device]
    command += ["--on", "local", "--store", str(options.store), "--budget", f"{max(1, round(end - begin - START))}s"]
    threads = max(1, (os.cpu_count() or 1) // options.lanes)
    with log.open("a", encoding="utf-8") as sink:
        process = subprocess.Popen(
            command, stdout=sink, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": str(threads)}
        )
        code = _wait(process, end + GRACE - time.monotonic())
    return Ended(study, code, time.monotonic() - begin)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Its exit code; one that outlives its time is asked to stop, and at last made to."""
    for signal in (process.terminate, process.kill):
        try:
            return process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            signal()
            seconds = LAST
    return process.wait()


@contextmanager
def _shared_gpu(options: argparse.Namespace) -> Iterator[None]:
    """NVIDIA's MPS around the lanes, where it is installed: without it they take turns on the chip."""
    control = shutil.which("nvidia-cuda-mps-control")
    if options.device == "cpu" or options.lanes == 1 or control is None:
        yield
        return
    subprocess.run([control, "-d"], check=False)
    try:
        yield
    finally:
        subprocess.run([control], input=b"quit\n", check=False)


def _pack(store: Path, folder: Path, most: int) -> None:
    """studies.NNN, then rest.NNN: the parts of two packed archives, by what is needed first."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rooms in (("studies", ("campaign", "studies")), ("rest", ("checkpoints", "cache"))):
        for old in folder.glob(f"{name}.[0-9]*"):  # of an earlier, larger store
            old.unlink()
        files = [file for room in rooms for file in _newest_first(store / room)]
        chosen, most = _that_fit(files, most)
        whole = folder / f"{name}.tar.gz"
        with tarfile.open(whole, "w:gz") as archive:
            for file in chosen:
                archive.add(file, arcname=str(file.relative_to(store)))
        size, parts = whole.stat().st_size, _split(whole, folder / name)
        print(f"packed {name}: {parts} parts, {size / 2**20:.1f} MiB", flush=True)
        if len(chosen) < len(files):
            left = sum(file.stat().st_size for file in files) - sum(file.stat().st_size for file in chosen)
            print(f"left out of {name}: {len(files) - len(chosen)} files, {left / 2**20:.1f} MiB", flush=True)


def _newest_first(room: Path) -> list[Path]:
    files = [file for file in room.rglob("*") if file.is_file()]
    return sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)


def _that_fit(files: Sequence[Path], most: int) -> tuple[list[Path], int]:
    """Files of so many bytes together, the first ones first, and how many bytes are left."""
    chosen = []
    for file in files:
        if (size := file.stat().st_size) <= most:
            chosen.append(file)
            most -= size
    return chosen, most


def _split(whole: Path, stem: Path) -> int:
    """Cut a file into PART bytes each, STEM.000, STEM.001, …, and remove it; how many there are."""
    with whole.open("rb") as source:
        parts = iter(lambda: source.read(PART), b"")
        count = 0
        for count, part in enumerate(parts, 1):
            stem.with_name(f"{stem.name}.{count - 1:03d}").write_bytes(part)
    whole.unlink()
    return count


if __name__ == "__main__":
    sys.exit(main())
