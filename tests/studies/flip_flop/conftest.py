"""The tests of this chapter share made-up runs and tiny settings, imported by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
