"""The code blocks of CONTRIBUTING.md are complete: a world, a model, a study and its test, each in one file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = ("worlds/coin.py", "models/bias_only.py", "studies/coin/fair.py")

RUN = """
import sandlab as sl, sandlab.worlds, sandlab.models, sandlab.studies
for room in (sandlab.worlds, sandlab.models, sandlab.studies):
    room.__path__.append({folder!r} + '/' + room.__name__.rpartition('.')[2])
from sandlab.worlds.coin import Coin
from sandlab.studies.coin.fair import study
batch = Coin(0.3).sample(50_000, rng=sl.rng(0))
assert abs(Coin(0.3).optimal_loss(batch) - 0.6109) < 0.003
report = sl.run(study, store={folder!r} + '/runs', progress=False)
print([finding.verdict for finding in report.findings])
{test}
test_every_claim_can_hold_and_can_fail()
print('both')
"""


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)


def test_a_world_a_model_and_a_study_written_from_the_page_alone_work(tmp_path: Path) -> None:
    *files, test = blocks()
    for name, text in zip(FILES, files, strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "studies" / "coin" / "__init__.py").write_text("")
    result = _python(RUN.format(folder=str(tmp_path), test=test))
    assert result.stdout.splitlines()[-2:] == ["['holds', 'holds']", "both"], result.stderr


def _python(code: str) -> subprocess.CompletedProcess[str]:
    helpers = str(REPOSITORY / "tests" / "studies")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), helpers])}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
