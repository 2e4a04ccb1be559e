"""What the generated pages show: recorded results, options with their meaning, an example for everything."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.cli.explain import parameter_names, parameter_texts, split_parameters
from sandlab.studies.claims import judge

KINDS = ("models", "circuits", "lenses", "decoders")


@pytest.fixture(scope="module")
def studies(docs):
    return docs("study_pages")


@pytest.fixture(scope="module")
def snippets(docs):
    return docs("snippets")


def test_the_tables_of_a_study_stand_on_its_page_with_the_published_numbers(studies):
    page = studies.study_page(sl.get("studies", "verifier/forced-backtracking"))
    full = page.split("## Results, full")[1]
    assert "| setting | accuracy | published |" in full and "| 0.790 |" in full
    assert "Computed 20" in full


def test_long_tables_are_folded_and_cells_cannot_break_them(studies):
    rows = [{"a": 0.123456, "b": "x | y < [z"}, {"a": None, "c": True}]
    assert studies.table("few", rows) == (
        '<details open markdown="1">\n<summary>few (2 rows)</summary>\n\n'
        "| a | b | c |\n| --- | --- | --- |\n| 0.1235 | x \\| y &lt; &#91;z |  |\n|  |  | True |\n\n</details>"
    )
    assert studies.table("many", rows * 20).startswith('<details markdown="1">')


def test_every_chapter_of_studies_belongs_to_a_source(studies):
    chapters = [chapter for members in studies.DOCUMENTS.values() for chapter in members]
    assert len(studies.DOCUMENTS) == 5 and len(chapters) == len(set(chapters))
    ours = [name for name in sl.names("studies") if sl.get("studies", name).__module__.startswith("sandlab.")]
    assert {name.partition("/")[0] for name in ours} <= set(chapters)


def test_a_source_page_shows_statement_theirs_ours_verdict_status_and_command(studies):
    page = studies.source_page("verifier", ["verifier/forced-backtracking"])
    assert "| statement | published | here | verdict | status |" in page
    assert "sandlab run verifier/forced-backtracking" in page and ("current" in page or "stale" in page)
    _, finding = studies.verdicts_of("verifier/forced-backtracking")["verifier/forced-backtracking.eight"][0]
    assert f"{finding.mean:.4g}" in page


def test_pages_show_a_stale_full_verdict_beside_the_current_quick_one_and_mark_both(studies, monkeypatch):
    study = sl.get("studies", "nce/gaussian-1d")
    claim = study.claims[0]
    runs = [
        SimpleNamespace(preset=preset, status=status, date=0.0, reduced=["seeds 5 of 20"] if preset == "quick" else [])
        for preset, status in (("quick", "current"), ("full", "stale"))
    ]
    judged = [(runs[0], judge(claim, [1.0, 1.1, 0.9])), (runs[1], judge(claim, [-1.0, -1.1, -0.9]))]
    monkeypatch.setattr(studies, "verdicts_of", lambda name: {claim.id: judged})
    page = studies.claims(study)
    assert "✓ holds<br><small>quick, 1970-01-01, current, reduced</small>" in page
    assert "<small>full, 1970-01-01, **stale**: ✗ fails, -1 " in page
    assert page.count("not measured yet") == len(study.claims) - 1
    assert studies.tally(study.name) == "✓ 1"
    source = studies.source_page("nce", [study.name])
    assert source.count("not measured yet") == len(study.claims) - 1
    rows = [line for line in source.splitlines() if line.startswith("| On the NCE")]
    assert [line.rsplit(" | ")[-1] for line in rows] == [
        "quick, 1970-01-01, current, reduced |",
        "full, 1970-01-01, **stale** |",
    ]


@pytest.mark.parametrize("name", sl.names("models"))
def test_every_option_of_every_model_is_explained_on_its_page_and_by_show(name, docs, capsys):
    model = sl.get("models", name)
    texts = parameter_texts(model)
    assert set(texts) == set(parameter_names(model))
    page = docs("thing_pages").parameters(model)
    assert page.count("\n| `") == len(texts) and "| what it is |" in page
    assert call(["show", name]) == 0
    assert "what it is" in capsys.readouterr().out


def test_two_columns_of_a_docstring_are_told_apart_from_its_text():
    columns = "vocab, length   tokens; positions\nwidth           numbers; depth is as in\n                the source"
    text = f"What it does.\n\n{columns}\n\nMore."
    rest, found = split_parameters(text, ["vocab", "length", "width", "depth"])
    assert rest == "What it does.\n\n\nMore."
    assert found["vocab"] == "tokens" and found["length"] == "positions"
    assert found["width"] == "numbers; depth is as in the source" and found["depth"] == "depth is as in the source"


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_an_example(snippets, kind):
    for name in sl.names(kind):
        found = snippets.snippet(kind, name, sl.get(kind, name))
        assert found is not None, f"{kind}/{name}: no example by hand and no test that calls it"
        ast.parse(found.code)


@pytest.mark.parametrize("kind", KINDS)
def test_examples_written_by_hand_run(snippets, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = {name: snippets.snippet(kind, name, sl.get(kind, name)) for name in sl.names(kind)}
    assert any(not found.test for found in examples.values())
    for name, found in examples.items():
        if not found.test:
            exec(compile(found.code, f"{kind}/{name}", "exec", dont_inherit=True), {})


def test_an_example_from_a_test_runs_with_the_helpers_that_it_needs(snippets):
    found = snippets.snippet("lenses", "head-lag-mass", sl.get("lenses", "head-lag-mass"))
    assert found.test.startswith("tests/lenses/")
    exec(compile(found.code, found.test, "exec", dont_inherit=True), {})


def test_no_formula_of_a_docstring_is_taken_for_a_link() -> None:
    """[a](b c) is a link for Markdown, which leads nowhere."""
    files = sorted((Path(__file__).parents[2] / "sandlab").rglob("*.py"))
    trees = [ast.walk(ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(node) or "" for tree in trees for node in tree if isinstance(node, kinds)]
    taken = [re.findall(r"\]\([^)]*[ ,…][^)]*\)", re.sub(r"`[^`]*`", "", text)) for text in texts]
    assert [each for found in taken for each in found] == []


def test_stars_of_formulas_are_no_emphasis(docs):
    """With p* twice in a sentence, Markdown would set what stands between them in italics and drop both stars."""
    formulas = docs("formulas")
    assert formulas.with_stars("E_{π,p*}|p − p*| of V*(y)") == "E_{π,p&#42;}|p − p&#42;| of V&#42;(y)"
    assert formulas.with_stars("∏_{t<κ} μ ∏_{t≥κ} P") == "∏\\_{t<κ} μ ∏\\_{t≥κ} P"
    assert formulas.subscripts("∏_{t}") == "∏<sub>t</sub>"
    words = "**What was learnt.** The *grid* and `a*b*c` stay."
    assert formulas.with_stars(words) == words


def test_formulas_become_pictures_and_code_stays(docs):
    formulas = docs("formulas")
    page = formulas.with_formulas(
        "A rate $\\frac{1}{n}$ and `$x$`.\n\n```sh\necho $HOME $PATH\n```\n\n$$\\sum_i x_i$$\n"
    )
    assert page.count("<svg") == 2 and "`$x$`" in page and "echo $HOME $PATH" in page
    assert 'aria-label="\\frac{1}{n}"' in page
    assert formulas.with_subscripts("<p>q_{t−1}, e^{x_{i}}</p><code>a_{b}</code>") == (
        "<p>q<sub>t−1</sub>, e<sup>x<sub>i</sub></sup></p><code>a_{b}</code>"
    )
    assert formulas.subscripts("k_1 v_N, E_π, P^t, init_std, a/b_c.py") == (
        "k<sub>1</sub> v<sub>N</sub>, E<sub>π</sub>, P<sup>t</sup>, init_std, a/b_c.py"
    )
