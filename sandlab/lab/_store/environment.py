"""What a result was made with: machine, Python, packages, SandLab's own sources."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata

from sandlab.lab._exec.sources import package_version
from sandlab.lab._store.plain import Facts

# `environment` stays out: as a name of this room it would hide this file.
__all__ = ["machine"]

_PACKAGES = (
    "torch",
    "numpy",
    "scipy",
    "sympy",
    "networkx",
    "scikit-learn",
    "matplotlib",
    "pyarrow",
    "safetensors",
    "transformers",
    "ray",
)


def environment(device: str = "cpu") -> Facts:
    """Date, machine, Python, package versions, and the hash of all SandLab sources."""
    import sandlab

    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "sandlab": sandlab.__version__,
        "sources": package_version()[:16],
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "device": device,
        **machine(device),
    }


def machine(device: str = "cpu") -> Facts:
    """The computer in words."""
    about: Facts = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
    }
    if device.startswith("cuda"):
        import torch

        about["accelerator"] = torch.cuda.get_device_name(device)
    return about


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()
