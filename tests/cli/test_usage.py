"""Help, wrong usage, global options, and the manners of the outputs."""

import json
import os
import re
import signal
import subprocess

import pytest

from conftest import COMMANDS, PROGRAM, environment

ESCAPE = "\x1b"


def test_version(twinkle):
    done = twinkle("--version")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"twinkle \d+\.\d+\.\d+\n", done.out)


def test_general_help_names_every_command(twinkle):
    done = twinkle("--help")
    assert (done.code, done.err) == (0, "")
    listed = re.search(r"Commands:\n((?:  .*\n)+)", done.out).group(1)
    assert re.findall(r"^  ([\w-]+)", listed, re.M) == COMMANDS
    assert "Example" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(twinkle, command):
    done = twinkle(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: twinkle {command}" in done.out
    assert re.search(rf"Examples?:\n  # .+\n  .*twinkle {command}", done.out, re.S)
    # Examples are copied, so they are one line each.
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("  twinkle ")) <= 100
    assert twinkle("--help", command).out == done.out
    assert twinkle(command, "-h").out == done.out


def test_help_of_an_unfinished_command_line(twinkle):
    assert twinkle("kernelize", "--map", "x", "--help").code == 0


@pytest.mark.parametrize("arguments, what, hint", [
    ([], "no command is given", "twinkle --help"),
    (["kernelise"], "unknown command 'kernelise'", "did you mean 'kernelize'?"),
    (["xyzzy"], "unknown command 'xyzzy'", "twinkle --help"),
    (["kernelize"], "MODEL is missing", "twinkle kernelize --help"),
    (["kernelize", "m.pt", "--verfy"], "unknown option '--verfy'", "did you mean '--verify'?"),
    (["kernelize", "m.pt", "--ouput=x"], "unknown option '--ouput'", "did you mean '--output'?"),
    (["kernelize", "m.pt", "-Z"], "unknown option '-Z'", "twinkle kernelize --help"),
    (["kernelize", "a.pt", "b.pt"], "one argument too many: 'b.pt'", "twinkle kernelize --help"),
    (["kernelize", "m.pt", "-o"], "--output needs a value", "twinkle kernelize --help"),
    (["kernelize", "m.pt", "-o", "a", "--output", "b"], "--output is given twice", "twinkle kernelize --help"),
    (["kernelize", "m.pt", "--verify=yes"], "", ""),
    (["kernelize", "m.pt", "--verify"], "--verify needs inputs", "--inputs"),
    (["kernelize", "m.pt", "--mode", "training+compil"], "--mode cannot be", "did you mean 'training+compile'?"),
    (["kernelize", "m.pt", "--fallback", "no-layr"], "--fallback cannot be 'no-layr'", "did you mean 'no-layer'?"),
    (["kernelize", "m.pt", "--strict", "--fallback", "all"], "contradict", ""),
    (["kernelize", "m.pt", "--device", "gpu7"], "--device cannot be 'gpu7'", ""),
    (["resolve", "-o", "-", "--json"], "both want standard output", ""),
    (["completions", "tcsh"], "no completions for 'tcsh'", "bash, zsh, fish"),
    (["--color", "alway", "env"], "--color cannot be 'alway'", "did you mean 'always'?"),
    (["-q", "-v", "env"], "--quiet and --verbose exclude each other", ""),
    (["--proejct", ".", "env"], "unknown option '--proejct'", "did you mean '--project'?"),
])
def test_wrong_usage(twinkle, arguments, what, hint):
    done = twinkle(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "--json" in arguments or done.err.startswith("error: ")
    assert what in done.err and hint in done.err
    if "--json" not in arguments:
        error = twinkle("--json", *arguments)
        assert (error.code, error.out) == (2, "")
        assert error.error["code"] == "malformed" and what in error.error["what"]


def test_json_errors_have_every_key(twinkle):
    for arguments in (["run", "none.pt", "--json"], ["--json", "run", "none.pt"]):
        done = twinkle(*arguments)
        assert (done.code, done.out) == (3, "")
        assert set(done.error) == {"code", "what", "where", "why", "hint"}
        assert (done.error["code"], done.error["where"]) == ("not-found", "none.pt")


def test_a_model_may_be_called_like_a_command(twinkle):
    done = twinkle("kernelize", "run", "--json")
    assert (done.code, done.error["where"]) == (3, "run")


def test_double_dash_ends_the_options(twinkle):
    assert twinkle("--json", "run", "--", "--help").error["where"] == "--help"


def test_files_are_looked_at_before_the_worker_starts(twinkle, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"a model")
    (tmp_path / "folder").mkdir()
    for arguments, code in [
        (["kernelize", "folder"], 2),
        (["kernelize", "model.pt", "-o", "model.pt"], 2),
        (["kernelize", "model.pt", "-o", "./folder/../model.pt"], 2),
        (["kernelize", "model.pt", "-o", "-"], 2),
        (["kernelize", "model.pt", "-o", "folder"], 2),
        (["kernelize", "model.pt", "-o", "no/folder/fast.pt"], 1),
        (["kernelize", "model.pt", "--map", "none.json"], 3),
        (["kernelize", "model.pt", "--inputs", "none.pt"], 3),
        (["run", "model.pt", "--inputs", "model.pt", "-o", "model.pt"], 2),
        (["run", "model.pt", "--kernels", "none"], 3),
        (["inspect", "none.pt"], 3),
    ]:
        done = twinkle(*arguments)
        assert (done.code, done.out) == (code, ""), (arguments, done.err)
    assert (tmp_path / "model.pt").read_bytes() == b"a model"


def test_a_link_to_the_model_is_the_model(twinkle, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"a model")
    (tmp_path / "link.pt").symlink_to("model.pt")
    os.link(tmp_path / "model.pt", tmp_path / "hard.pt")
    for name in ("link.pt", "hard.pt"):
        done = twinkle("kernelize", "model.pt", "-o", name)
        assert done.code == 2 and "overwrite" in done.err


def test_without_a_runtime(twinkle, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"a model")
    twinkle.env["TWINKLE_LIBEXEC"] = tmp_path / "none"
    done = twinkle("inspect", "model.pt")
    assert done.code == 3 and "no runtime" in done.err


def test_env(twinkle):
    done = twinkle("env")
    assert (done.code, done.err) == (0, "")
    facts = twinkle("env", "--json").json
    assert facts["schema"] == "twinkle.env/1"
    assert set(facts["target"]) >= {"torch", "backend", "cpu", "os"}
    assert all(isinstance(value, str) for value in facts["target"].values())
    assert facts["cpu"]["cores"] > 0


@pytest.mark.parametrize("before", [["--json"], []])
def test_global_options_before_and_after(twinkle, before):
    after = [] if before else ["--json"]
    assert twinkle(*before, "env", *after).json["schema"] == "twinkle.env/1"


def test_project_before_and_after(twinkle):
    results = [twinkle("--project", "none", "resolve"), twinkle("resolve", "--project", "none"),
               twinkle("resolve", "--project=none")]
    assert {done.code for done in results} == {3}
    assert len({done.err for done in results}) == 1


def test_no_escape_codes_without_a_terminal(twinkle):
    for arguments in (["env"], ["--help"], ["kernelize", "--help"], ["nonsense"], ["run", "none.pt"]):
        done = twinkle(*arguments, env={"TERM": "xterm-256color"})
        assert ESCAPE not in done.out + done.err
        assert "\r" not in done.out + done.err


def test_colours(twinkle):
    assert ESCAPE in twinkle.on_terminal("nonsense").out
    assert ESCAPE in twinkle.on_terminal("--help").out
    assert ESCAPE not in twinkle.on_terminal("nonsense", env={"NO_COLOR": "1"}).out
    assert ESCAPE in twinkle.on_terminal("nonsense", env={"NO_COLOR": ""}).out
    assert ESCAPE not in twinkle.on_terminal("nonsense", env={"TERM": "dumb"}).out
    assert ESCAPE not in twinkle.on_terminal("--color=never", "nonsense").out
    assert ESCAPE not in twinkle.on_terminal("nonsense", "--color", "never").out
    assert ESCAPE in twinkle.on_terminal("--color=always", "nonsense", env={"NO_COLOR": "1"}).out
    assert ESCAPE in twinkle("--color=always", "nonsense").err
    assert ESCAPE in twinkle("--color=always", "--help").out


def test_names_from_outside_cannot_steer_the_terminal(twinkle):
    done = twinkle("run", "\x1b[31mred\x07.pt")
    assert done.code == 3
    assert ESCAPE not in done.err and "\x07" not in done.err and "\\x1B[31mred" in done.err


def test_a_full_disk_is_said(twinkle):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "env"], stdout=full, stderr=subprocess.PIPE, timeout=60,
                              env=environment())
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_a_reader_that_goes_away_is_no_error(twinkle):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PROGRAM, "--help"], stdout=writer, stderr=subprocess.PIPE, timeout=60,
                          env=environment())
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_it_starts_without_libtorch(twinkle):
    shown = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    libraries = " ".join(line.split(" (0x")[0] for line in shown.splitlines())  # an address may hold a "c10"
    assert "libc.so" in libraries
    assert "torch" not in libraries and "c10" not in libraries


def test_help_is_not_json(twinkle):
    assert twinkle("--json", "--help").out == twinkle("--help").out
    with pytest.raises(json.JSONDecodeError):
        json.loads(twinkle("--help", "--json").out)


def test_add_where_no_project_is(twinkle):
    done = twinkle("add", "acme/norm", "--json")
    assert done.code == 3 and "twinkle init" in done.error["hint"], done.err


@pytest.mark.parametrize("text", ["version = 1x", "kernel = ", "[[", '{"a":'])
def test_a_broken_lock_says_what_to_do(twinkle, text):
    (twinkle.folder / "twinkle.toml").write_text("")
    (twinkle.folder / "twinkle.lock").write_text(text)
    done = twinkle("lock", "--check", "--json")
    assert done.code == 2 and "twinkle.lock" in done.error["where"], done.err
    assert done.error["hint"]
