"""Manual pages and completions: current, well-formed, and they really complete."""

import re
import shutil
import subprocess

import pytest

from conftest import COMMANDS, ROOT

PAGES = ["twinkle.1", *(f"twinkle-{command}.1" for command in COMMANDS)]
SCRIPTS = {"bash": "twinkle.bash", "zsh": "_twinkle", "fish": "twinkle.fish"}
OUT_OF_DATE = "it is out of date: build the target 'docs' (ninja -C build/release docs)"


def test_committed_files_are_current(twinkle, tmp_path):
    assert twinkle("man", "--generate", ".").code == 0
    for folder in ("man", "completions"):
        generated = {path.name: path.read_text() for path in (tmp_path / folder).iterdir()}
        committed = {path.name: path.read_text() for path in (ROOT / folder).iterdir()}
        assert sorted(generated) == sorted(committed), f"{folder}/: {OUT_OF_DATE}"
        for name, text in generated.items():
            assert text == committed[name], f"{folder}/{name}: {OUT_OF_DATE}"


def test_every_command_has_its_page(twinkle):
    assert sorted(path.name for path in (ROOT / "man").iterdir()) == sorted(PAGES)
    for command in COMMANDS:
        assert twinkle("man", command).out == (ROOT / "man" / f"twinkle-{command}.1").read_text()
    assert twinkle("man", "nonsense").code == 3


def test_the_page_names_the_variables_that_are_read():
    page = (ROOT / "man/twinkle.1").read_text().replace("\\", "")
    read = {name for path in (ROOT / "src").rglob("*.cpp")
            for name in re.findall(r'"((?:TWINKLE|HF|SSL)_[A-Z_]+|KERNELS_CACHE|https?_proxy)"', path.read_text())}
    # For programs that call twinkle, not for people.
    read -= {"HF_HUB_USER_AGENT_ORIGIN"}
    assert len(read) > 15 and not [name for name in sorted(read) if name not in page]


@pytest.mark.parametrize("page", PAGES)
def test_man_shows_the_page(page):
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", ROOT / "man" / page], capture_output=True)
        assert done.stdout == b""
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-T", "ascii", "-P-cbou", "-ww", ROOT / "man" / page], capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"SYNOPSIS" in done.stdout and b"EXAMPLES" in done.stdout or page == "twinkle.1"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_shell_reads_its_script(twinkle, shell):
    script = ROOT / "completions" / SCRIPTS[shell]
    assert twinkle("completions", shell).out == script.read_text()
    assert twinkle("completions", shell, "--json").json == {
        "schema": "twinkle.completions/1", "shell": shell, "script": script.read_text()}
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", script], capture_output=True).stderr == b""


def bash_completes(folder, *words):
    """What bash offers for the last of `words`; bash itself breaks words at "="."""
    program = ("source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
               "_twinkle; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-uc", program, "bash", ROOT / "completions/twinkle.bash", "twinkle", *words],
                          cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return sorted(done.stdout.split())


def test_bash_completes(tmp_path):
    (tmp_path / "model.pt").touch()
    (tmp_path / "kernels").mkdir()
    assert bash_completes(tmp_path, "ker") == ["kernelize"]
    assert set(COMMANDS) <= set(bash_completes(tmp_path, ""))
    assert "man" not in bash_completes(tmp_path, "")
    assert bash_completes(tmp_path, "--js") == ["--json"]
    assert bash_completes(tmp_path, "--color", "") == ["always", "auto", "never"]
    assert bash_completes(tmp_path, "--color", "=", "al") == ["always"]
    assert bash_completes(tmp_path, "--color", "=") == ["always", "auto", "never"]
    assert bash_completes(tmp_path, "--color", "never", "res") == ["resolve"]
    assert bash_completes(tmp_path, "--project", "kernels", "kern") == ["kernelize"]
    assert bash_completes(tmp_path, "kernelize", "--ver") == ["--verbose", "--verify", "--version"]
    assert bash_completes(tmp_path, "kernelize", "mo") == ["model.pt"]
    assert bash_completes(tmp_path, "kernelize", "model.pt", "--mode", "inf") == ["inference", "inference+compile"]
    assert bash_completes(tmp_path, "kernelize", "model.pt", "-o", "") == ["kernels", "model.pt"]
    assert bash_completes(tmp_path, "run", "model.pt", "--kernels", "") == ["kernels"]
    assert bash_completes(tmp_path, "run", "--method", "f") == []
    assert bash_completes(tmp_path, "resolve", "") == []
    assert bash_completes(tmp_path, "completions", "f") == ["fish"]
    assert bash_completes(tmp_path, "-v", "versions", "") == ["kernels"]


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
def test_fish_completes(tmp_path):
    def completes(line):
        done = subprocess.run(["fish", "-N", "-c", f"source {ROOT}/completions/twinkle.fish; complete -C '{line}'"],
                              cwd=tmp_path, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": tmp_path})
        return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

    assert completes("twinkle ker") == ["kernelize"]
    assert "--verify" in completes("twinkle kernelize --")
    assert completes("twinkle kernelize --mode inf") == ["inference", "inference+compile"]
    assert completes("twinkle completions z") == ["zsh"]
