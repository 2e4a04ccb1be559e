"""Shared by all tests: one torch thread (the suite runs a process per core) and no screen."""

import os
import sys
from pathlib import Path

from jaxtyping import install_import_hook

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "disabled")

sys.path.insert(0, str(Path(__file__).parent))
if os.environ.get("SANDLAB_SHAPES"):
    install_import_hook("sandlab", "shapes.shapes_only")
