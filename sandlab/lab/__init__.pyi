# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.lab.bench.figures import case_page as case_page
from sandlab.lab.bench.figures import machine_words as machine_words
from sandlab.lab.bench.figures import ratio_figure as ratio_figure
from sandlab.lab.bench.figures import summary_figure as summary_figure
from sandlab.lab.bench.figures import write_measurements as write_measurements
from sandlab.lab.bench.measure import MINUTES as MINUTES
from sandlab.lab.bench.measure import benchmark_files as benchmark_files
from sandlab.lab.bench.measure import load_benchmark as load_benchmark
from sandlab.lab.bench.measure import measure_against as measure_against
from sandlab.lab.bench.measure import measure_all as measure_all
from sandlab.lab.bench.measure import measure_here as measure_here
from sandlab.lab.coverage import Row as Row
from sandlab.lab.coverage import read_coverage as read_coverage
from sandlab.lab.coverage import resolve as resolve
from sandlab.lab.laboratory import Laboratory as Laboratory
from sandlab.lab.laboratory import Progress as Progress
from sandlab.lab.run import Report as Report
from sandlab.lab.run import load_report as load_report
from sandlab.lab.training import Plan as Plan
from sandlab.lab.training import Training as Training
from sandlab.lab.training import train_model as train_model

__all__ = [
    "MINUTES",
    "Laboratory",
    "Plan",
    "Progress",
    "Report",
    "Row",
    "Training",
    "benchmark_files",
    "case_page",
    "load_benchmark",
    "load_report",
    "machine_words",
    "measure_against",
    "measure_all",
    "measure_here",
    "ratio_figure",
    "read_coverage",
    "resolve",
    "summary_figure",
    "train_model",
    "write_measurements",
]
