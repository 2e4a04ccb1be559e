# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab import atlas as atlas
from sandlab import circuits as circuits
from sandlab import decoding as decoding
from sandlab import figures as figures
from sandlab import lab as lab
from sandlab import learning as learning
from sandlab import lenses as lenses
from sandlab import models as models
from sandlab import studies as studies
from sandlab import worlds as worlds
from sandlab.errors import BadInput as BadInput
from sandlab.lab.run import run as run
from sandlab.models.hooks import patch as patch
from sandlab.models.hooks import record as record
from sandlab.random import rng as rng
from sandlab.registry import get as get
from sandlab.registry import names as names
from sandlab.registry import register as register

ROOMS: tuple[str, ...]
__version__: str
