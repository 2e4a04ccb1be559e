"""Running a study: its jobs through the laboratory, its findings and figures into the store."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sandlab.checking import checked_types
from sandlab.errors import BadInput, choice, integer, number, shown
from sandlab.lab._exec.executors import Executor, executor
from sandlab.lab._exec.jobs import canonical, library_versions
from sandlab.lab._exec.sources import code_version, module_version
from sandlab.lab._store.codec import Payload, decode, encode
from sandlab.lab._store.environment import environment
from sandlab.lab._store.files import checksum
from sandlab.lab._store.plain import Facts, Json, plain
from sandlab.lab._store.store import Record, Store
from sandlab.lab.laboratory import Laboratory, Progress
from sandlab.progress import ProgressBar
from sandlab.registry import get
from sandlab.studies.claims import Finding
from sandlab.studies.study import AnyStudy, Outcome, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS, ARRAYS, TENSORS = "results/results.json", "results/arrays.npz", "results/tensors.safetensors"

# `run` is public as `sandlab.run`; as a name of this room it would hide this file.
__all__ = ["Report", "Store", "load_report"]


@dataclass(frozen=True)
class Report:
    """What a run found.

    findings  one per claim: verdict, mean, interval, the source's value
    figures   name → SVG file (a PNG lies beside it)
    metrics   claim → the measured values, one per seed
    tables    name → rows
    path      the run's folder in the store
    reused    the run was finished before and is unchanged since
    """

    study: str
    preset: str
    findings: list[Finding]
    figures: dict[str, Path]
    metrics: dict[str, list[float]]
    path: Path
    tables: dict[str, list[Facts]] = field(default_factory=dict)
    about: Facts = field(default_factory=dict)
    reused: bool = False

    @property
    def surprises(self) -> list[Finding]:
        """Findings that fail although the source says they hold."""
        return [finding for finding in self.findings if finding.surprising]

    def __str__(self) -> str:
        lines = [f"{self.study} ({self.preset})"]
        lines += [f"  {each.verdict:<12} {each.claim}: {each.mean:.4g}, {each.relation}" for each in self.findings]
        return "\n".join([*lines, f"  in {self.path}"])

    def _repr_html_(self) -> str:
        """Findings and figures, for notebooks."""
        from sandlab.lab._report.site import summary

        return summary(self)


@checked_types
def run(
    name: str | AnyStudy,
    preset: str = "quick",
    *,
    seeds: int | None = None,
    device: str = "cpu",
    on: str | Executor = "local",
    store: str | Path | Store | None = None,
    settings: Mapping[str, object] | None = None,
    resume: bool = True,
    judge_only: bool = False,
    budget: float | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
) -> Report:
    """Run a study, given by name or as it is, and judge its claims.

    seeds     number of seeds instead of the preset's
    on        "local", "processes[:N]", "ray", "ray://host:port", or an executor
    settings  fields of the study's configuration to change
    resume    use what is in the store already; False computes everything again
    judge_only  judge and draw the stored results of the last run of this preset again; nothing is computed
    budget    seconds after which the run stops at a checkpoint and raises `OutOfTime`; the same call goes on from there
    progress  a function called with each `Progress`; by default lines or a bar on the terminal, False for silence
    """
    study: AnyStudy = get("studies", name) if isinstance(name, str) else name
    if not isinstance(study, Study):
        raise BadInput(f"name must be that of a study, or a study, got {shown(name)}: see `sandlab list studies`")
    if judge_only:
        return rejudge(study, preset, Store.open(store))
    config = study.config(preset, **_changes(study, preset, settings or {}, seeds))
    check_device(device)
    if budget is not None:
        number("budget", budget, low=0.0)
    opened = Store.open(store)
    code = module_version(study.__module__)
    label = preset if config == study.presets[preset] else "custom"
    what = {"study": study.name, "preset": label, "config": canonical(config), "device": device}
    identity = {**what, "code": code, "libraries": library_versions()}
    key = checksum(json.dumps(identity, sort_keys=True).encode())
    if resume and (known := opened.finished(key)) is not None:
        return load_report(known, reused=True)
    started = time.time()
    outcome, lab = _measure(study, config, preset, opened, on, device, resume, budget, progress)
    about = {
        **identity,
        "key": key,
        "base": preset,
        "collect": collect_version(study, config),
        "title": study.title,
        "source": study.source,
        "executor": lab.executor.name,
        "started": started,
        "finished": time.time(),
        "seconds": time.time() - started,
        "jobs": lab.counts,
    }
    files = {**_files(outcome), "environment.json": _json(environment(device))}
    with opened.lock(key):
        # The same study may have finished elsewhere while this one ran: one of two equal results is enough.
        twin = opened.finished(key) if resume else None
        return load_report(opened.save(about, files) if twin is None else twin)


def load_report(record: Record, *, reused: bool = False) -> Report:
    """A report read from the store."""
    findings = [Finding.from_dict(row) for row in record.read("findings.json")]
    figures = {Path(name).stem: record.path / name for name in record.files if name.endswith(".svg")}
    metrics = {finding.claim: list(finding.values) for finding in findings}
    tables = record.read("tables.json") if "tables.json" in record.files else {}
    study, preset = record.about["study"], record.about["preset"]
    return Report(study, preset, findings, figures, metrics, record.path, tables, record.about, reused)


def rejudge(study: AnyStudy, preset: str, store: Store) -> Report:
    """Judge and draw the stored results of the last run again, as a run of its own with the same date of computing."""
    records = [each for each in store.latest(study.name, preset) if RESULTS in each.files]
    if not records:
        raise BadInput(f"{study.name} has no stored results in {preset}: give `sandlab run {study.name}` first")
    record = records[0]
    try:
        results = decode(_read_results(record), study.results_type)
    except Exception as problem:  # of another form: the study has changed since, or other hands wrote it
        raise BadInput(
            f"the results in {record.path} cannot be read ({problem}): give `sandlab run {study.name} --fresh`"
        ) from problem
    outcome = study.judge(results, record.about.get("base", preset))
    kept = {name: (record.path / name).read_bytes() for name in ("environment.json",)}
    about = {**record.about, "judged": time.time(), "judged_by": module_version(study.__module__)}
    about["key"] = checksum(json.dumps([about["key"], about["judged_by"]]).encode())
    return load_report(store.save(about, {**_files(outcome), **kept}))


def collect_version(study: AnyStudy, config: object) -> str:
    """Hash of the code that the study's results depend on: neither claims and figures nor presets are part of it.

    A preset counts by its value, which stands beside this hash: another preset may change without a word to this one.
    """
    return code_version(study.collector, config, decorators=False) if study.collector is not None else ""


def is_current(about: Facts, study: AnyStudy, preset: str) -> bool:
    """Whether a recorded run of a preset has today's settings and today's code."""
    config, recorded = study.presets.get(preset), about.get("collect")
    if config is None or not recorded or plain(canonical(config)) != about.get("config"):
        return False
    return bool(recorded == collect_version(study, config))


def _read_results(record: Record) -> Payload:
    parts = [(record.path / name).read_bytes() if name in record.files else b"" for name in (ARRAYS, TENSORS)]
    return Payload((record.path / RESULTS).read_text(encoding="utf-8"), *parts)


def _measure(
    study: AnyStudy,
    config: object,
    preset: str,
    store: Store,
    on: str | Executor,
    device: str,
    resume: bool,
    budget: float | None,
    progress: Callable[[Progress], None] | bool | None,
) -> tuple[Outcome, Laboratory]:
    place = executor(on)
    try:
        with ProgressBar(study.name, 0, unit="jobs", show=progress if isinstance(progress, bool) else None) as bar:
            tell = progress if callable(progress) else on_bar(bar, study.name)
            lab = Laboratory(store, place, device=device, resume=resume, budget=budget, progress=tell)
            return study.run(config, lab, preset), lab
    finally:
        if isinstance(on, str):
            place.close()


def on_bar(bar: ProgressBar, title: str) -> Callable[[Progress], None]:
    """Show the progress of one `map` after another on a bar."""
    current: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal current
        if progress is not current:
            current = progress
            bar.begin(f"{title} · {progress.label}", progress.total)
        bar.update(progress.done, progress.details)

    return show


def _changes(study: AnyStudy, preset: str, settings: Mapping[str, object], seeds: int | None) -> Facts:
    """Settings with `seeds` put everywhere the study's settings have seeds: their own, and those of experiments."""
    changes = dict(settings)
    if seeds is None:
        return changes
    integer("seeds", seeds, low=1)
    chosen = study.config(preset, **changes)
    if not has_seeds(chosen):
        raise BadInput(f"{study.name} has no seeds: everything in it is exact")
    reseeded = with_seeds(chosen, seeds)
    return {each.name: getattr(reseeded, each.name) for each in fields(reseeded)}


def has_seeds(value: object) -> bool:
    """Whether a value is, or holds, something with seeds."""
    if is_dataclass(value) and not isinstance(value, type):
        return any(each.name == "seeds" or has_seeds(getattr(value, each.name)) for each in fields(value))
    return isinstance(value, (tuple, list)) and any(map(has_seeds, value))


def with_seeds(value: Json, seeds: int) -> Json:
    """The same settings with so many seeds wherever seeds are counted (a tuple of seeds becomes the first so many)."""
    if isinstance(value, tuple):
        return tuple(with_seeds(item, seeds) for item in value)
    if not has_seeds(value):
        return value
    changed = {each.name: with_seeds(getattr(value, each.name), seeds) for each in fields(value) if each.init}
    if "seeds" in changed:
        changed["seeds"] = tuple(range(seeds)) if isinstance(value.seeds, tuple) else seeds
    return replace(value, **changed)


def check_device(device: str) -> None:
    kind = device.partition(":")[0] if isinstance(device, str) else device
    choice("device", kind, ("cpu", "cuda"), "a GPU is called cuda" if kind == "gpu" else "")
    if device != "cpu":
        import torch

        if not torch.cuda.is_available():
            raise BadInput(f"device must be 'cpu' on this machine, got {device!r}: torch finds no CUDA device")


def _files(outcome: Outcome) -> dict[str, bytes]:
    """The files of a run, by name."""
    results = encode(outcome.results)
    files = {
        "findings.json": _json([finding.as_dict() for finding in outcome.findings]),
        "metrics.parquet": _parquet(_long(outcome.findings)),
        RESULTS: results.structure.encode(),
        ARRAYS: results.arrays,
        TENSORS: results.tensors,
    }
    if outcome.tables:
        files["tables.json"] = _json(outcome.tables)
    for name, rows in outcome.tables.items():
        if rows:
            files[f"tables/{name}.parquet"] = _parquet(rows)
    for name, figure in outcome.figures.items():
        for kind in ("svg", "png"):
            files[f"figures/{name}.{kind}"] = _draw(figure, kind)
    return {name: data for name, data in files.items() if data}


def _long(findings: list[Finding]) -> list[Facts]:
    return [
        {"claim": finding.claim, "index": index, "value": value}
        for finding in findings
        for index, value in enumerate(finding.values)
    ]


def _draw(figure: Figure, kind: str) -> bytes:
    from sandlab.figures import style

    buffer = io.BytesIO()
    with style():
        # Without its date, the same figure is the same file.
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _parquet(rows: list[Facts]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: None for row in rows for name in row}
    table = pa.table({name: _column([_cell(row.get(name)) for row in rows]) for name in columns})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _column(values: list[Json]) -> list[Json]:
    """Values of one kind; a column that mixes words and numbers becomes words."""
    words = any(isinstance(value, str) for value in values)
    return [value if value is None or isinstance(value, str) else str(value) for value in values] if words else values


def _cell(value: Json) -> Json:
    return value.item() if isinstance(value, np.generic) else value


def _json(value: object) -> bytes:
    return json.dumps(plain(value), indent=1, ensure_ascii=False).encode()
