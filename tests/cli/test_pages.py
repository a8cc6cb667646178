"""The pages of docs/: what they show is what happens."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import COMMANDS, PROGRAM, ROOT, environment
from kernels_for_tests import PREFIX, TORCH_LIB, needs_runtime

sys.path.insert(0, str(ROOT / "tests"))

import pages  # noqa: E402

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))


def reader(folder: pathlib.Path, **changes):
    """A folder with the examples of the repository, and the programs that a reader has."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "bin").mkdir()
    (folder / "bin/kernel-builder").symlink_to(pathlib.Path(__file__).with_name("kernel_builder.py"))
    return environment(PATH=f"{PROGRAM.parent}:{folder}/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
                       TWINKLE_TORCH=TORCH_LIB.parent, CXXFLAGS="-O0 -w",
                       HF_HUB_OFFLINE=1, **changes)


@needs_runtime
@pytest.mark.parametrize("page, commands", [("docs/kernels.md", 10), ("docs/compiled_kernels.md", 6), ("docs/formulas.md", 1)])
def test_kernels(page, commands, tmp_path):
    assert pages.run_page(page, tmp_path, reader(tmp_path)) >= commands


@needs_runtime
def test_export(tmp_path):
    assert pages.run_page("docs/export.md", tmp_path, reader(tmp_path)) >= 5


@needs_runtime
@pytest.mark.parametrize("page, commands", [
    ("README.md", 6), ("docs/how_it_decides.md", 3), ("docs/performance.md", 4), ("docs/inputs.md", 6), ("docs/troubleshooting.md", 3)])
def test_short_ones(page, commands, tmp_path):
    assert pages.run_page(page, tmp_path, reader(tmp_path)) >= commands


@needs_runtime
def test_fewer_bits(tmp_path):
    """Of the model of the first page."""
    script = next(content for _, name, content in pages.blocks("docs/getting_started.md") if name == "model.py")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert pages.run_page("docs/precision.md", tmp_path, reader(tmp_path)) >= 1


@needs_runtime
def test_installing_from_source(tmp_path):
    assert pages.run_page("docs/installing.md", tmp_path, reader(tmp_path, BUILD=PREFIX)) >= 5


@needs_runtime
@pytest.mark.parametrize("page, commands", [("docs/serving.md", 9), ("docs/getting_started.md", 8)])
def test_with_a_server(page, commands, tmp_path):
    """Against an installed tree, as its reader has one."""
    prefix = tmp_path / "installed"
    for component in ("tool", "runtime", "dev"):
        subprocess.run(["cmake", "--install", PREFIX, "--prefix", prefix, "--component", component], check=True,
                       capture_output=True)
    folder = tmp_path / "reader"
    folder.mkdir()
    assert pages.run_page(page, folder, reader(folder, PREFIX=prefix)) >= commands


@needs_runtime
def test_tuning(tmp_path):
    runtime = next((PREFIX / "libexec/twinkle").glob("torch*"))
    env = reader(tmp_path, RUNTIME=runtime, XDG_CACHE_HOME=tmp_path / "cache")
    (tmp_path / "include").symlink_to(ROOT / "include")
    assert pages.run_page("docs/tuning.md", tmp_path, env) >= 8


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *PAGES])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]*)(#[^)]+)?\)", text) + re.findall(r"^\[.*\]: ([^#\n:]*)(#.+)?$", text, re.M)
    for link, place in links:
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        assert not place or place[1:] in headings(target), f"{link}{place}"


def headings(page: pathlib.Path) -> list[str]:
    """As GitHub names them in links."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", prose, re.M)]


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_links_lead_to_pages(page):
    """A folder shows a reader of an installed page, or of a site, nothing."""
    links = re.findall(r"\]\(([^)#:]+)", (ROOT / page).read_text())
    assert [link for link in links if ((ROOT / page).parent / link).is_dir()] == []


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text()
    assert PAGES and all(f"({page})" in text for page in PAGES)


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []


@pytest.mark.parametrize("page", ["README.md", "kernels/README.md", "bench/README.md", *PAGES])
def test_prose_has_100_columns(page):
    """Tables, code and figures may be wider."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    assert [line for line in text.splitlines() if len(line) > 100 and not line.startswith(("|", "    "))] == []


def test_every_command_has_a_row():
    text = (ROOT / "docs/commands.md").read_text()
    rows = " ".join(re.findall(r"^\| (`.*?) \| ", text, re.M))
    assert [name for name in COMMANDS if not re.search(rf"(twinkle |`){name}\b", rows)] == []


def test_every_key_of_a_manifest_has_a_row():
    sources = "\n".join(path.read_text() for path in (ROOT / "src/project").glob("manifest*.cpp"))
    keys = set(re.findall(r'\b(?:reader|fields)\.\w+\("([a-z_]+)"\)', sources))
    keys |= set(re.findall(r'\bread_(?:attributes|string_lists)\(reader, "(\w+)"\)', sources))
    targets = re.search(r"keys\{(.*?)\}", (ROOT / "src/target/target_spec.cpp").read_text(), re.S)[1]
    keys |= set(re.findall(r'"([\w-]+)"', targets))
    assert len(keys) > 25
    rows = " ".join(re.findall(r"^\| (.*?) \| ", (ROOT / "docs/manifest.md").read_text(), re.M))
    assert [key for key in keys if f"`{key}`" not in rows and f"`[{key}" not in rows] == []


def test_every_command_that_is_named_is_one():
    for page in PAGES:
        for language, _, content in pages.blocks(page):
            if language in ("sh", "console", "yaml"):
                named = re.findall(r"^\W*(?:run: )?(?:[A-Z_]+=\S+ )*twinkle (?:--json )?([a-z-]+)", content, re.M)
                assert set(named) <= set(COMMANDS), f"{page}: {named}"


def test_messages_of_the_page_of_troubles_are_in_the_sources():
    files = [file for folder in ("src", "script/wheel") for file in (ROOT / folder).rglob("*") if file.suffix in {".cpp", ".h", ".c", ".py"}]
    sources = "\n".join(re.sub(r'"\s*"', "", file.read_text().replace('\\"', "''")) for file in files)
    # What is put together: ends of literals, names of variables, places in format strings.
    sources = re.sub(r"\{[^{}\"\n]{0,60}\}", "{}", sources)
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.M)
    messages = [message for row in rows if "LibTorch's" not in row for message in re.findall(r"`([^`]*)`", row)
                if not message.startswith("--")]
    assert len(messages) > 50
    parts = [part.replace('"', "''").strip(" ,:") for message in messages for part in re.split(r"…|\[|\]|twinkle: ", message)]
    assert not [part for part in parts if part not in sources]
