"""Jobs on Ray: embedded in this machine, or on a cluster that is joined.

The driver alone writes the store; a worker only computes and sends the bytes of its result back. What a lost node was
computing is reported as a passing failure, and the laboratory sends it out again after a pause. A head that no longer
answers ends the run with a sentence, long before Ray itself gives up.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time
from typing import Any

from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Outcome
from sandlab.lab._exec.jobs import Done, Failed, Resources, Task, execute_elsewhere
from sandlab.lab._exec.sources import PACKAGE
from sandlab.lab._store.plain import Facts

__all__ = ["Cluster", "ClusterLost"]

_FRESH_FOR = 1.0  # seconds for which the list of nodes is believed
_TRIES = 3
_PATIENCE = 10.0  # seconds without an answer after which the head is believed to be lost
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # and empty settings


class ClusterLost(RuntimeError):
    """The head of the cluster no longer answers. Nothing more can be asked of Ray in this process."""


class Cluster:
    """Ray as an executor.

    address  None: an embedded Ray (or the cluster that RAY_ADDRESS names); "ray://host:port": the client port of a
             cluster elsewhere; "ray:host:port" or "ray:auto": a cluster this machine belongs to
    """

    name = "ray"
    here_when_alone = False

    def __init__(self, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as missing:
            raise BadInput(
                "on must be local or processes here: ray is not installed, try sandlab[cluster]"
            ) from missing
        self.ray = ray
        self._in_flight: dict[object, Task] = {}
        self._nodes: list[Facts] = []
        self._seen = -_FRESH_FOR
        self._lost, self._answered = False, time.monotonic()
        self._asking: threading.Thread | None = None
        self._mine = not ray.is_initialized()
        if self._mine:
            self._connect(address)
        self._head = self._address_of_head(address)
        self._execute = ray.remote(max_retries=0)(_compute)

    @property
    def slots(self) -> int:
        """Twice the cores: a node that ends a job finds the next one waiting."""
        return max(2, int(2 * sum(node["Resources"].get("CPU", 0) for node in self._alive())))

    @property
    def gpus(self) -> int:
        return max(1, int(sum(node["Resources"].get("GPU", 0) for node in self._alive())))

    def submit(self, task: Task) -> None:
        self._check(task.resources)
        asked = {"num_cpus": task.resources.cpus, "num_gpus": task.resources.gpus}
        if task.resources.memory:
            asked["memory"] = task.resources.memory
        parcel = self.ray.cloudpickle.dumps(task)
        self._in_flight[self._execute.options(**asked).remote(parcel, sys.path)] = task

    def collect(self, timeout: float) -> list[Outcome]:
        self._listen()
        waiting = list(self._in_flight)
        try:
            first, _ = self.ray.wait(waiting, num_returns=1, timeout=timeout)
            ready = self.ray.wait(waiting, num_returns=len(waiting), timeout=0)[0] if first else []
        except ConnectionError as problem:
            raise self._gone(str(problem)) from problem
        return [(self._in_flight.pop(reference), self._outcome(reference)) for reference in ready]

    def status(self) -> dict[str, int]:
        return {"nodes": len(self._alive())}

    def abandon(self) -> None:
        if self._lost:  # every call to Ray would wait for the head
            self._in_flight.clear()
        for reference in self._in_flight:
            self.ray.cancel(reference, force=True)
        self._in_flight.clear()

    def close(self) -> None:
        self.abandon()
        if self._mine and not self._lost:
            self.ray.shutdown()

    def _connect(self, address: str | None) -> None:
        options: Facts = {"log_to_driver": False, "logging_level": "error"}
        place = address or os.environ.get("RAY_ADDRESS") or "local"
        if place == "local":  # said to Ray, which would else join what it remembers, though that may long be dead
            options["include_dashboard"] = False
        else:
            # Every node computes with the sources that this machine has, whatever it has installed.
            options["runtime_env"] = {"py_modules": [str(PACKAGE)]}
            _knock(place)
        self._begin(address=place if place.startswith("ray://") else place.removeprefix("ray:"), **options)

    def _begin(self, **options: Any) -> None:
        """Start or join Ray, which gives its processes half a minute to appear: a busy machine may need another try."""
        for left in reversed(range(_TRIES)):
            try:
                self.ray.init(**options)
                return
            except Exception as problem:
                self.ray.shutdown()
                if left == 0 or isinstance(problem, (ValueError, TypeError)):
                    told = f"Ray could not be started or joined ({problem})"
                    raise ConnectionError(f"{told}: give the same command again, or --on processes") from problem

    def _address_of_head(self, address: str | None) -> str:
        """Where the head listens: the client's port, or the address that the runtime knows."""
        if address is not None and address.startswith("ray://"):
            return address.removeprefix("ray://")
        return str(self.ray.get_runtime_context().gcs_address)

    def _listen(self) -> None:
        """Knock at the head every second; raise when it has not answered for some time."""
        now = time.monotonic()
        if now - self._answered < _FRESH_FOR:
            return
        try:
            host, _, port = self._head.rpartition(":")
            socket.create_connection((host, int(port)), timeout=1.0).close()
            self._answered = time.monotonic()
        except OSError as problem:
            silent = time.monotonic() - self._answered
            if silent >= _PATIENCE:
                raise self._gone(f"{problem}, for {silent:.0f} seconds") from problem

    def _gone(self, why: str) -> ClusterLost:
        self._lost = True
        return ClusterLost(
            f"the head of the Ray cluster at {self._head} no longer answers ({why}): what was finished is kept; start "
            "the cluster again and give the same command, or give it with --on processes"
        )

    def _outcome(self, reference: Any) -> Done | Failed:
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError as problem:  # outside the job: SandLab itself cannot be loaded there
            return Failed(type(problem.cause).__name__, str(problem.cause))
        except errors.RayError as problem:
            return Failed(type(problem).__name__, str(problem), transient=True)

    def _check(self, asked: Resources) -> None:
        """Refuse what no node can ever give; Ray itself would wait without end."""
        wanted = {"CPU": asked.cpus, "GPU": asked.gpus, "memory": asked.memory}
        if not any(all(node["Resources"].get(kind, 0) >= n for kind, n in wanted.items()) for node in self._alive()):
            raise BadInput(f"no node of the cluster has {asked.cpus} CPUs, {asked.gpus} GPUs, {asked.memory:g} bytes")

    def _alive(self) -> list[Facts]:
        """Nodes that live. A lost head lets the question wait for a minute: the last answer stands meanwhile."""
        if time.monotonic() - self._seen < _FRESH_FOR or self._lost:
            return self._nodes
        if not self._nodes:
            self._ask_for_nodes()
            return self._nodes
        if self._asking is None:
            self._asking = threading.Thread(target=self._ask_for_nodes, daemon=True)
            self._asking.start()
        self._asking.join(_FRESH_FOR)
        if not self._asking.is_alive():
            self._asking = None
        return self._nodes

    def _ask_for_nodes(self) -> None:
        try:
            self._nodes = [node for node in self.ray.nodes() if node["Alive"]]
            self._seen = time.monotonic()
        except Exception:  # whether the head is lost is for `_listen` to say
            if not self._nodes:
                raise


def _knock(address: str) -> None:
    """Refuse an address where nobody listens, or somebody else does: Ray itself would try for many minutes."""
    where = address
    if address.endswith("auto"):
        from ray._private.utils import read_ray_address

        where = read_ray_address() or ""
        if not where:
            raise BadInput("no Ray cluster runs on this machine: start one with `ray start --head`, or give --on ray")
    host, colon, port = where.removeprefix("ray:").removeprefix("//").rpartition(":")
    if not (colon and port.isdigit()):
        raise BadInput(f"a Ray cluster has an address like ray://host:10001, got {address!r}")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as line:
            line.settimeout(5)
            line.sendall(_GREETING)
            answer = line.recv(9)
    except TimeoutError:
        raise BadInput(f"what listens at {address} is not a Ray cluster: it does not answer") from None
    except (OSError, OverflowError) as problem:
        raise BadInput(f"no Ray cluster answers at {address}: {problem}") from problem
    if len(answer) < 4 or answer[3] != 4:  # a gRPC server begins with its settings
        raise BadInput(f"what listens at {address} is not a Ray cluster: it answered {answer!r}")


def _compute(parcel: bytes, path: list[str]) -> Done | Failed:
    """What runs on a node. Modules are found where the driver finds them, as far as the node has these folders."""
    sys.path.extend(folder for folder in path if folder not in sys.path and os.path.isdir(folder or "."))
    try:
        task: Task = pickle.loads(parcel)
    except Exception as problem:
        return Failed(type(problem).__name__, f"{problem}, on a node: install the job's module there")
    outcome = execute_elsewhere(task)
    if task.resources.gpus:  # the GPU may be shared with another job: give its memory back
        import torch

        torch.cuda.empty_cache()
    return outcome
