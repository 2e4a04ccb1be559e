# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.studies.claims import Best as Best
from sandlab.studies.claims import Claim as Claim
from sandlab.studies.claims import Exact as Exact
from sandlab.studies.claims import Finding as Finding
from sandlab.studies.claims import Mean as Mean
from sandlab.studies.claims import Median as Median
from sandlab.studies.claims import NotMeasured as NotMeasured
from sandlab.studies.claims import Noted as Noted
from sandlab.studies.claims import Order as Order
from sandlab.studies.claims import Quantity as Quantity
from sandlab.studies.claims import Ratio as Ratio
from sandlab.studies.claims import Share as Share
from sandlab.studies.claims import Slope as Slope
from sandlab.studies.claims import Values as Values
from sandlab.studies.claims import judge as judge
from sandlab.studies.jobs import resources as resources
from sandlab.studies.nulls import untrained as untrained
from sandlab.studies.study import AnyStudy as AnyStudy
from sandlab.studies.study import Lab as Lab
from sandlab.studies.study import Outcome as Outcome
from sandlab.studies.study import Row as Row
from sandlab.studies.study import Rows as Rows
from sandlab.studies.study import Study as Study

__all__ = [
    "AnyStudy",
    "Best",
    "Claim",
    "Exact",
    "Finding",
    "Lab",
    "Mean",
    "Median",
    "NotMeasured",
    "Noted",
    "Order",
    "Outcome",
    "Quantity",
    "Ratio",
    "Row",
    "Rows",
    "Share",
    "Slope",
    "Study",
    "Values",
    "judge",
    "resources",
    "untrained",
]
