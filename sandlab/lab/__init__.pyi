# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.lab.dataset_card import export_dataset as export_dataset
from sandlab.lab.laboratory import Laboratory as Laboratory
from sandlab.lab.lens_bridge import bridge_to_transformer_lens as bridge_to_transformer_lens
from sandlab.lab.run import Report as Report
from sandlab.lab.run import Store as Store
from sandlab.lab.run import load_report as load_report
from sandlab.lab.sweeps import Sweep as Sweep
from sandlab.lab.sweeps import log_runs as log_runs
from sandlab.lab.sweeps import sweep as sweep
from sandlab.lab.torch_export import export_torch as export_torch
from sandlab.lab.training import TrainedModels as TrainedModels
from sandlab.lab.training import fit_config as fit_config
from sandlab.lab.training import train_experiment as train_experiment

__all__ = [
    "Laboratory",
    "Report",
    "Store",
    "Sweep",
    "TrainedModels",
    "bridge_to_transformer_lens",
    "export_dataset",
    "export_torch",
    "fit_config",
    "load_report",
    "log_runs",
    "sweep",
    "train_experiment",
]
