"""The tests of this chapter share small settings, imported by their name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
