# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.studies.claims import Claim as Claim
from sandlab.studies.claims import Exact as Exact
from sandlab.studies.claims import Finding as Finding
from sandlab.studies.claims import Mean as Mean
from sandlab.studies.claims import Noted as Noted
from sandlab.studies.claims import NotMeasured as NotMeasured
from sandlab.studies.claims import Quantity as Quantity
from sandlab.studies.claims import Share as Share
from sandlab.studies.claims import Values as Values
from sandlab.studies.claims import judge as judge
from sandlab.studies.jobs import resources as resources
from sandlab.studies.study import Lab as Lab
from sandlab.studies.study import Outcome as Outcome
from sandlab.studies.study import Row as Row
from sandlab.studies.study import Rows as Rows
from sandlab.studies.study import Study as Study

__all__ = [
    "Claim",
    "Exact",
    "Finding",
    "Lab",
    "Mean",
    "NotMeasured",
    "Noted",
    "Outcome",
    "Quantity",
    "Row",
    "Rows",
    "Share",
    "Study",
    "Values",
    "judge",
    "resources",
]
