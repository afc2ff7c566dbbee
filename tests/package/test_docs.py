"""What README, docs and notebooks say is so: code blocks run, commands, files and names exist; docstrings are whole."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from browser import CHROMIUM

from qdsim.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
TEXTS = [*PAGES, *sorted(ROOT.glob("notebooks/*.ipynb"))]
MODULES = (
    "qdsim",
    "qdsim.planning",
    "qdsim.pressure",
    "qdsim.sensors",
    "qdsim.smoothing",
    "qdsim.systems",
    "qdsim.formats",
    "qdsim.description",
)

# The file that README's example loads: a finger on a slide beside a box on the floor.
SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <body name="finger" pos="-0.16 0 0.05">
      <joint name="reach" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.05" mass="0.2"/>
    </body>
    <body name="object" pos="0 0 0.1">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="0.5"/>
    </body>
  </worldbody>
  <actuator><position joint="reach" kp="100"/></actuator>
</mujoco>
"""


HUGE = {"torch": "torch", "sb3": "stable_baselines3"}
"""From names of our modules to what they need and not every environment has, since it is so large."""

TRAININGS = r"^from (stable_baselines3|torchrl|skrl)\b"
"""Code that tests/learning/test_rl_libraries.py runs."""


def blocks(language):
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{k}")
        for page in PAGES
        for k, text in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S))
        if not re.search(TRAININGS, text, re.M)
    ]


@pytest.mark.long
@pytest.mark.parametrize("code", blocks("python"))
def test_code_runs_as_it_stands(code, tmp_path):
    for module in HUGE.values():
        if re.search(rf"^(import|from) {module}\b", code, re.M):
            pytest.importorskip(module)
    (tmp_path / "my_robot_and_object.xml").write_text(SCENE)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout


def test_there_is_code_to_run():
    assert any("README" in parameter.id for parameter in blocks("python"))


def test_commands_exist():
    """`make X`, `python X.py`, `qdsim X` and `pip install X` of code blocks and inline code."""
    rules = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(), re.M)
    targets = {target for rule in rules for target in rule.split()}
    assert "demo" in targets
    extras = set(re.findall(r"^([a-z0-9]+) = \[", (ROOT / "pyproject.toml").read_text(), re.M))
    seen = 0
    for page in PAGES:
        text = page.read_text()
        pieces = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.S)
        code = "\n".join(block or inline for block, inline in pieces)
        for target in re.findall(r"^make ([a-z-]+)", code, re.M):
            assert target in targets, f"{page.name}: make {target}"
            seen += 1
        for script in re.findall(r"\bpython3? ([\w/]+\.py)", code):
            assert (ROOT / script).exists(), f"{page.name}: {script}"
            seen += 1
        for command in re.findall(r"^qdsim (\w+)", code, re.M):
            with pytest.raises(SystemExit) as end:
                main([command, "--help"])
            assert end.value.code == 0, f"{page.name}: qdsim {command}"
            seen += 1
        for extra in re.findall(r"pip install '?(?:\.|qdsim)\[(\w+)\]", code):
            assert extra in extras, f"{page.name}: extra {extra}"
            seen += 1
    assert seen > 8


def test_links_lead_somewhere():
    missing = []
    for page in TEXTS:
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\\?\"([^\"\\]+)\\?\"", page.read_text())
        for link in (a or b for a, b in links):
            made = ("attachment:", "data:", "../_static/")  # the site writes the last ones
            here = "://" not in link and not link.startswith(made)
            if here and not (page.parent / link).exists():
                missing.append(f"{page.name}: {link}")
    assert not missing


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_can_be_read_without_running_them(path):
    """They install qdsim where it is missing, and keep text and pictures, small ones, and no errors."""
    cells = json.loads(path.read_text())["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert 'find_spec("qdsim") is None' in "".join(first["source"]) and not first["outputs"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any(output["output_type"] == "stream" for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert path.stat().st_size < 200_000


def test_badges_open_each_notebook_where_it_is_published(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("add_badges", ROOT / "tools/add_badges.py")
    badges = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(badges)
    copy = tmp_path / "01_first_plan.ipynb"
    copy.write_bytes((ROOT / "notebooks" / copy.name).read_bytes())
    before = json.loads(copy.read_text())
    for repository in ("nobody/else", "some-body/qdsim"):
        badges.add(copy, repository, "main")
    after = json.loads(copy.read_text())
    assert after["cells"][1:] == before["cells"][1:]
    text = "".join(after["cells"][0]["source"])
    assert text.count("colab-badge") == 1
    assert "github/some-body/qdsim/blob/main/notebooks/01_first_plan.ipynb)" in text
    assert text.startswith("# A first plan\n\n[![") and "fingers has to turn a disc" in text


# What a search of the site begins with: one of these pages among the first three, and no changelog among ten.
SEARCHES = {
    "friction cone": r"generated/qdsim/Options|docs/(formulation|steps|coming_from)",
    "warm start": r"docs/steps.html",
    "joint limit": r"generated/qdsim/(Options|Model)|docs/(steps|troubleshooting)",
    "ball": r"docs/systems|notebooks/05_allegro_hand|docs/transfer",
    "linearize": r"generated/qdsim/linearize",
}


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
@pytest.mark.skipif(not (ROOT / "build/docs/search.html").exists(), reason="make docs comes first")
@pytest.mark.parametrize("words", SEARCHES)
def test_search_of_the_site_finds_what_is_meant(words, tmp_path):
    pytest.importorskip("websockets")
    from browser import open_page

    place = (ROOT / "build/docs/search.html").as_uri() + "?q=" + quote(words)
    script = "[...document.querySelectorAll('ul.search a')].map(a => a.getAttribute('href'))"
    with open_page(place, tmp_path) as page:
        end = time.monotonic() + 60.0
        while len(found := page.evaluate(script)) < 5 and time.monotonic() < end:
            time.sleep(0.2)
    assert any(re.search(SEARCHES[words], link) for link in found[:3]), found[:5]
    late = ["CHANGELOG" in link or "benchmarks/" in link for link in found[:10]]
    assert late == sorted(late), found[:10]  # they come after all that is said for users


@pytest.mark.long
@pytest.mark.skipif(not (ROOT / "build/docs/search.html").exists(), reason="make docs comes first")
def test_what_pages_of_the_site_show_and_link_to_is_there():
    """Every picture and every file beside the pages."""
    missing = set()
    for page in (ROOT / "build/docs").rglob("*.html"):
        for target in re.findall(r'<[^>]+\s(?:src|href)="([^"]+)"', page.read_text()):
            place = urlsplit(target)
            if place.scheme or place.netloc or not place.path:
                continue
            if not (page.parent / unquote(place.path)).exists():
                missing.add(f"{page.name}: {target}")
    assert not missing


def test_lines_of_pages_end_at_120_columns():
    """But for tables, code, formulas, and what cannot be broken."""
    long = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for block in re.split(r"(```.*?```|\$\$.*?\$\$)", page.read_text(), flags=re.S)[::2]:
            for line in block.splitlines():
                if len(line) > 120 and not line.startswith("|") and " " in line.strip():
                    long.append(f"{page.name}: {line[:60]}")
    assert not long


@pytest.mark.long
def test_gallery_shows_every_film():
    """Films of all plans, commands and motions that are published, small ones, each with a poster."""
    from qdsim import systems

    page = (ROOT / "docs/gallery.md").read_text()
    shown = re.findall(r"\]\(images/gallery/(\w+)\.webm\)", page)
    films = {name: ROOT / f"docs/images/gallery/{name}.webm" for name in shown}
    loaded = {name: systems.load(name) for name in systems.NAMES}
    moved = {name for name, system in loaded.items() if system.tasks or len(system.commands)}
    assert films.keys() == moved | {*systems.DYNAMIC_NAMES}
    assert {p.stem for p in (ROOT / "docs/images/gallery").iterdir()} <= films.keys()
    for film in films.values():
        assert film.stat().st_size <= 500_000
        assert film.with_suffix(".jpg").exists()


def test_names_in_texts_exist():
    """Dotted names in inline code that begin with the package or one of its modules."""
    heads = {m.removeprefix("qdsim."): m for m in MODULES[1:]} | {"qdsim": "qdsim"}
    missing, seen = set(), 0
    for page in TEXTS:
        for dotted in re.findall(r"`([a-z_]+(?:\.[A-Za-z_]\w*)+)", page.read_text()):
            head, *rest = dotted.split(".")
            if head not in heads or rest[-1] in ("h", "py", "md", "xml"):
                continue
            needed = [module for name, module in HUGE.items() if name in rest]
            if any(importlib.util.find_spec(module) is None for module in needed):
                continue
            seen += 1
            try:
                found = importlib.import_module(heads[head])
                for name in rest:
                    found = (
                        getattr(found, name)
                        if hasattr(found, name)
                        else importlib.import_module(f"{found.__name__}.{name}")
                    )
            except (ImportError, AttributeError):
                missing.add(f"{page.name}: {dotted}")
    assert not missing and seen > 30


def public():
    found = []
    for module in MODULES:
        scope = importlib.import_module(module)
        for name in scope.__all__:
            thing = getattr(scope, name)
            if callable(thing):
                found.append(pytest.param(thing, id=f"{module}.{name}"))
    return found


def named(name, text):
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


@pytest.mark.short_cases(32)
@pytest.mark.parametrize("thing", public())
def test_docstrings_tell_of_every_argument(thing):
    """Every argument of a function and every field of a class is spoken of, or the text says where it is."""
    text = inspect.getdoc(thing) or ""
    assert len(text) > 20
    if inspect.isclass(thing):
        if dataclasses.is_dataclass(thing):
            # What a class inherits, its base tells of.
            text = "\n".join(c.__doc__ or "" for c in thing.__mro__[:-1])
            body = text + "".join(inspect.getsource(c) for c in thing.__mro__[:-1])
            for field in dataclasses.fields(thing):
                documented = named(field.name, text) or re.search(
                    rf'^    {field.name}: [^\n]*\n    """', body, re.M
                )
                assert documented or field.name.startswith("_"), field.name
        for name, member in vars(thing).items():
            if not name.startswith("_") and (
                inspect.isfunction(member) or isinstance(member, property)
            ):
                assert inspect.getdoc(getattr(thing, name) if callable(member) else member), name
        return
    see = re.search(r"[Aa]rguments(?: and errors)? as (?:in|for|of)|[Ss]ee[ :]", text)
    for name in inspect.signature(thing).parameters:
        assert named(name, text) or see, name


def test_messages_of_the_troubleshooting_page_are_printed_somewhere():
    """Each heading in code there is part of a text in the sources."""
    sources = [*ROOT.glob("python/qdsim/**/*.py"), *ROOT.glob("csrc/**/*.c")]
    texts = [re.sub(r'"\s*f?"', "", path.read_text()) for path in sources]
    headings = re.findall(r"^### `(.*)`$", (ROOT / "docs/troubleshooting.md").read_text(), re.M)
    assert len(headings) > 8
    assert [h for h in headings if not any(h in text for text in texts)] == []


def test_every_public_name_is_listed():
    """docs/api.md, which tools/list_api.py writes."""
    listed = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "api.md").read_text(), re.M))
    missing = set()
    for module in MODULES:
        scope = importlib.import_module(module)
        missing |= {n for n in scope.__all__ if not inspect.ismodule(getattr(scope, n))} - listed
    assert not missing, "run python tools/list_api.py"


@pytest.mark.parametrize("module, page", [("qdsim", "core"), ("qdsim.planning", "planning")])
def test_every_name_stands_in_the_contents_by_task(module, page):
    """docs/reference: each name that has a page, once."""
    text = (ROOT / f"docs/reference/{page}.md").read_text()
    listed = re.findall(rf"^generated/{module}/(\w+)$", text, re.M)
    scope = importlib.import_module(module)
    named = [n for n in scope.__all__ if callable(getattr(scope, n))]
    assert sorted(listed) == sorted(named)
