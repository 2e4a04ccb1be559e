"""A result's code version follows what the job can reach, and nothing else."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import textwrap
from pathlib import Path

import pytest

from sandlab.errors import BadInput
from sandlab.lab._exec import sources
from sandlab.lab._exec.imports import _names, meaning
from sandlab.lab._exec.jobs import canonical, task
from sandlab.lab._exec.sources import closure, code_version, identity, module_version

FILES = {
    "parts/__init__.py": "",
    "parts/deep.py": "DEPTH = 3\n",
    "parts/middle.py": "from . import deep\n\ndef depth():\n    return deep.DEPTH\n",
    "parts/unused.py": "NOTHING = 0\n",
    "parts/configs.py": "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Inner:\n    x: int = 1\n",
    "parts/jobs.py": """
        import math
        from dataclasses import dataclass
        from parts import middle, unused
        from parts.configs import Inner

        SCALE = 2
        COLOUR = "red"

        @dataclass(frozen=True)
        class Config:
            x: int = 1
            inner: Inner = Inner()

        def helper(x):
            return SCALE * x

        def job(config):
            return {"y": helper(config.x) + middle.depth()}

        def picture():
            return COLOUR, unused.NOTHING
        """,
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A package on disk; `edit` changes one file and gives the job's version as a fresh process would see it."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))

    def load():
        for name in [name for name in sys.modules if name.partition(".")[0] == "parts"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("parts.jobs")

    def version():
        module = load()
        return code_version(module.job, module.Config())

    def edit(name: str, old: str, new: str) -> str:
        path = tmp_path / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        return version()

    yield version, edit
    for name in [name for name in sys.modules if name.partition(".")[0] == "parts"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("parts/jobs.py", "SCALE = 2", "SCALE = 3"),
        ("parts/jobs.py", "SCALE * x", "x * SCALE"),
        ("parts/jobs.py", "x: int = 1", "x: int = 2"),
        ("parts/middle.py", "return deep.DEPTH", "return 1 + deep.DEPTH"),
        ("parts/deep.py", "DEPTH = 3", "DEPTH = 4"),
        ("parts/configs.py", "x: int = 1", "x: int = 5"),
    ],
)
def test_a_change_the_job_can_reach_changes_its_version(project, file, old, new):
    version, edit = project
    assert version() != edit(file, old, new)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("parts/jobs.py", 'COLOUR = "red"', 'COLOUR = "blue"'),
        ("parts/jobs.py", "return COLOUR, unused.NOTHING", "return COLOUR"),
        ("parts/unused.py", "NOTHING = 0", "NOTHING = 1"),
    ],
)
def test_a_change_the_job_cannot_reach_leaves_its_version(project, file, old, new):
    version, edit = project
    assert version() == edit(file, old, new)


REGISTERED = """
PRESET = 3
BODY = 1

class Registry:
    def __init__(self, preset):
        self.preset = preset

    def collect(self, function):
        return function

study = Registry(PRESET)

@study.collect
def job(config):
    return BODY
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"), [("PRESET = 3", "PRESET = 4", False), ("BODY = 1", "BODY = 2", True)]
)
def test_what_registers_a_job_may_be_left_out_and_what_its_body_reads_may_not(tmp_path, monkeypatch, old, new, counts):
    monkeypatch.syspath_prepend(tmp_path)
    versions = []
    for name, text in (("before", REGISTERED), ("after", REGISTERED.replace(old, new))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "presets_of_a_job.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path / name)
        sys.modules.pop("presets_of_a_job", None)
        importlib.invalidate_caches()
        module = importlib.import_module("presets_of_a_job")
        versions.append([code_version(module.job, decorators=decorators) for decorators in (True, False)])
    del sys.modules["presets_of_a_job"]
    (all_before, before), (all_after, after) = versions
    assert all_before != all_after
    assert (before != after) == counts


@pytest.mark.parametrize(("place", "mark"), [("_door", "guarded"), ("learning._engine.threads", "few_threads")])
def test_marks_that_change_no_result_leave_a_version_as_it_is(project, place, mark):
    """On the job's own code and on what it imports; a decorator of the same name from elsewhere counts."""
    version, edit = project
    before = version()
    imported = f"from sandlab.{place} import {mark}"
    assert edit("parts/middle.py", "from . import deep\n\n", f"from . import deep\n{imported}\n\n@{mark}\n") == before
    assert edit("parts/jobs.py", "import math\n", f"import math\n{imported}\n") == before
    assert edit("parts/jobs.py", "def helper", f"@{mark}\ndef helper") == before
    assert edit("parts/jobs.py", "def job", f"@{mark}\ndef job") == before
    assert edit("parts/jobs.py", imported, f"{mark} = staticmethod") != before


def test_a_worker_with_other_sources_refuses_the_job(project, tmp_path):
    from sandlab.lab._exec.jobs import Done, execute_elsewhere

    version, _ = project
    version()
    module = sys.modules["parts.jobs"]
    sent = task(module.job, module.Config())
    assert isinstance(execute_elsewhere(sent), Done)
    for file, old, new in [("parts/deep.py", "3", "4"), ("parts/jobs.py", "SCALE = 2", "SCALE = 5")]:
        path = tmp_path / file
        path.write_text(path.read_text().replace(old, new))
        sources._forget()  # a new process reads what is there now
        outcome = execute_elsewhere(sent)
        assert outcome.kind == "SourcesDiffer"
        assert file.removesuffix(".py").replace("/", ".") in outcome.message
        path.write_text(path.read_text().replace(new, old))
    path = tmp_path / "parts/jobs.py"
    path.write_text(path.read_text().replace("red", "blue"))
    sources._forget()
    assert isinstance(execute_elsewhere(sent), Done)


def test_the_closure_of_a_sandlab_module_is_what_it_imports():
    import sandlab.studies.claims

    found = closure({"sandlab.studies.claims": Path(sandlab.studies.claims.__file__)})
    assert {"sandlab.studies.claims", "sandlab.errors"} == set(found)


def test_names_of_rooms_lead_to_their_files_and_look_ups_to_whole_rooms(tmp_path):
    file = tmp_path / "script.py"
    file.write_text("import sandlab as sl\n\ndef job(c):\n    return sl.worlds.Dyck, sl.models.Transformer\n")
    found = set(closure({"script": file}))
    assert {"sandlab.worlds.dyck.language", "sandlab.models.transformer"} <= found
    assert "sandlab.worlds.flip_flop.language" not in found
    other = tmp_path / "other.py"
    other.write_text('from sandlab import get\n\ndef job(c):\n    return get("worlds", "dyck")\n')
    found = set(closure({"other": other}))
    assert {"sandlab.worlds.dyck.language", "sandlab.worlds.flip_flop.language"} <= found
    assert not any(name.startswith("sandlab.studies") for name in found)
    any_room = tmp_path / "any_room.py"
    any_room.write_text("import sandlab\n\ndef job(kind):\n    return sandlab.get(kind, 'x')\n")
    assert any(name.startswith("sandlab.studies") for name in closure({"any_room": any_room}))


def test_a_new_model_makes_no_result_of_another_stale(tmp_path):
    """Every model can be saved, and what saves can load any other; only a job that loads depends on all of them."""
    file = tmp_path / "script.py"
    file.write_text("import sandlab as sl\n\ndef job(c):\n    return sl.models.MLP\n")
    found = set(closure({"script": file}))
    assert {"sandlab.models.mlp", "sandlab.models.base"} <= found
    assert not {"sandlab.models.io", "sandlab.models.recurrent"} & found
    reader = tmp_path / "reader.py"
    reader.write_text("import sandlab as sl\n\ndef job(c):\n    return sl.models.load(c)\n")
    assert {"sandlab.models.io", "sandlab.models.recurrent"} <= set(closure({"reader": reader}))


def test_libraries_are_not_followed(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "mine.py").write_text("import other\n")
    (folder / "other.py").write_text("")
    assert set(closure({"mine": folder / "mine.py"})) == {"mine"}


def test_a_job_needs_a_name_and_a_source():
    with pytest.raises(BadInput, match="top of a module"):
        identity(lambda config: 0)
    names: dict = {"__name__": "nowhere"}
    exec("def job(config):\n    return 0", names)
    with pytest.raises(BadInput, match="cannot be read"):
        code_version(names["job"])
    with pytest.raises(BadInput, match="not loaded from a file"):
        module_version("nowhere")


def test_a_module_loaded_again_is_read_again(project, tmp_path):
    version, _ = project
    version()
    before = dict(sources._known)
    version()
    assert sources._known["parts.jobs:job"] is not before["parts.jobs:job"]


def test_keys_tell_apart_values_types_and_class_names():
    from toys import Plan, Toy, average

    keys = {task(average, config).key for config in (Toy(1), Toy(2), Toy(1, size=1), Toy(1, size=1.0), Plan(1))}
    assert len(keys) == 5
    assert task(average, Toy(1)).key == task(average, Toy(seed=1)).key


def test_configs_with_anything_else_are_refused_with_the_field():
    from toys import Toy

    with pytest.raises(BadInput, match=r"config\.size is a object"):
        canonical(Toy(1, size=object()))
    import numpy as np

    assert canonical({"a": (1, [np.float64(0.5)])}) == {"a": [1, [0.5]]}


def test_docstrings_comments_and_annotations_do_not_count():
    told = '"""Words."""\n\n\ndef f(a: int = 1) -> "int":  # é\n    """More words."""\n    return a\n'
    assert meaning(told) == meaning(told.replace("More", "Other").replace("int", "float"))
    assert meaning(told) != meaning(told.replace("a: int = 1", "a: int = 2"))


def test_the_door_counts_as_it_was_so_that_a_refusal_makes_no_result_stale(tmp_path):
    """`sandlab.checking` lets calls through as they are, or refuses them: its text is no part of a result."""
    edited = tmp_path / "edited.py"
    edited.write_text("SCALE = 2\n")
    now = {name: sources.PACKAGE / f"{name}.py" for name in ("checking", "random")}
    assert sources._part("sandlab.checking", edited) == sources._part("sandlab.checking", now["checking"])
    assert sources._part("sandlab._fitting", edited) == ""
    assert sources._part("sandlab.random", edited) != sources._part("sandlab.random", now["random"])


def test_how_results_are_judged_makes_none_stale_because_no_study_judges_while_it_collects(tmp_path):
    edited = tmp_path / "edited.py"
    edited.write_text("SCALE = 2\n")
    studies = sources.PACKAGE / "studies"
    judging = sources._part("sandlab.studies.claims", studies / "claims.py")
    assert sources._part("sandlab.studies.claims", edited) == judging
    files = [file for file in studies.rglob("*.py") if file.name not in ("claims.py", "study.py")]
    assert len(files) > 150
    judges = re.compile(r"\bjudge\(|\.(interval|estimate|excludes|remark)\(")
    assert [file.name for file in files if judges.search(file.read_text(encoding="utf-8"))] == []


def test_no_job_writes_or_reads_the_folders_of_hugging_face():
    """So that their text may count as it was when results were recorded."""
    rooms = ("worlds", "circuits", "learning", "decoding", "lenses", "studies")
    files = [file for room in rooms for file in (sources.PACKAGE / room).rglob("*.py")]
    words = ("models.hugging_face", "export_hugging_face", "SandlabForCausalLM")
    assert len(files) > 300 and not [file for file in files if any(word in file.read_text() for word in words)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def job(x, *rest, y=far, **more): return near(x, rest, y, more)", {"far", "near"}),
        ("def job():\n    curve = 1\n    for row in rows: curve += row\n    return curve", {"rows"}),
        ("def job():\n    return [depth for depth in range(3) if depth < limit], depth", {"range", "limit", "depth"}),
        ("TABLE = {depth: each for depth, each in pairs}", {"pairs"}),
        ("def job():\n    global count\n    count = count + 1", {"count"}),
        ("def job():\n    global count\n    count += 1", {"count"}),
        ("class Case:\n    size += 1", {"size"}),
        ("def job(x):\n    return (lambda y: x + y + z)(1)", {"z"}),
        ("def job(x):\n    def inner(): return x + z\n    return inner()", {"z", "inner"}),
        ("@study.figure\ndef draw(results: Results): return plot(results)", {"study", "Results", "plot"}),
        (
            "class Case:\n    size: int = SIZE\n    def area(self): return self.size * width",
            {"int", "SIZE", "width"},
        ),
        ("def job():\n    if (found := look()) is None: return other\n    return found", {"look", "other"}),
    ],
)
def test_a_name_that_a_function_or_a_class_binds_itself_leads_nowhere(text, names):
    (part,) = ast.parse(text).body
    assert set(_names(part)) == names
