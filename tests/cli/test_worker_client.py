"""What becomes of whatever a worker does. A Python program stands in for the worker."""

import json
import os
import signal
import time

import pytest

REPORT = {
    "schema": "twinkle.kernelize/1", "mode": "inference", "device": "cpu",
    "sites": [
        {"site": "model.layers.0.post_attention_layernorm", "kind": "layer",
         "of": "transformers.models.llama.modeling_llama.LlamaRMSNorm", "status": "replaced",
         "kernel": "twinkle-pack: RMSNorm", "variant": "torch-stable-abi210-cpu-x86_64-linux",
         "because": "bound by the preset", "max_error": 1.2e-7, "original_error": 1e-7, "allowed_error": 1.5e-7},
        {"site": "model.layers.0.mlp", "kind": "layer",
         "of": "transformers.models.llama.modeling_llama.LlamaMLP", "status": "reverted",
         "kernel": "twinkle-pack: SwiGLUMLP", "variant": "torch-stable-abi210-cpu-x86_64-linux",
         "because": "its error is larger than it may be", "max_error": 0.5, "original_error": 1e-7,
         "allowed_error": 1.5e-7},
        {"site": "model.embed", "kind": "layer", "of": "my.Emb\x1b[31m", "status": "kept", "kernel": None,
         "variant": None, "because": "no kernel fits, and that for a reason that takes more than a few words",
         "max_error": None, "original_error": None, "allowed_error": None}],
    "replaced": 1, "kept": 1, "reverted": 1, "verified": True, "warnings": ["mind the gap"],
    "shapes": [{"size": "given", "inputs": "int64[1,8]"}, {"size": "batch 2", "inputs": "int64[2,8]"}], "tolerance": 1.0,
    "whole": {"max_error": 2e-7, "original_error": 2e-7, "allowed_error": 3e-7, "because": ""},
}
FINISH = f"event({{'result': json.loads({json.dumps(json.dumps(REPORT))})}})\n"
KERNELIZE = ["kernelize", "model.pt", "--map", "empty.map.json", "-o", "fast.pt"]


def test_the_request(fake_worker, tmp_path):
    twinkle = fake_worker("event({'result': {'request': request, 'lib': os.environ['LD_LIBRARY_PATH']}})")
    result = twinkle("--json", *KERNELIZE, "--mode", "compile", "--device", "cpu", "--inputs", "inputs.pt",
                     "--verify", "--only", "a.*", "--only", "b", "--exclude", "c", "--fallback",
                     "no-layer,cannot-load", "--report", "report.json", env={"TWINKLE_KERNELS": "k1::/k2"}).json
    request = result["request"]
    assert result["lib"].split(":")[0] == str(tmp_path / "libexec/torch2.13-cpu")
    expected = {"schema": "twinkle.request/1", "command": "kernelize", "model": str(tmp_path / "model.pt"),
                "output": str(tmp_path / "fast.pt"), "mode": "inference+compile", "device": "cpu",
                "inputs": str(tmp_path / "inputs.pt"), "verify": True, "only": ["a.*", "b"], "exclude": ["c"],
                "fallback": ["no-layer", "cannot-load"], "strict": False, "dry_run": False,
                "report": str(tmp_path / "report.json"), "method": "forward", "threads": None}
    assert {key: request[key] for key in expected} == expected
    assert json.loads(request["map"])["schema"] == "twinkle.map/1"
    assert request["kernel_dirs"][:2] == [str(tmp_path / "k1"), "/k2"]
    assert request["kernel_dirs"][2].endswith("lib/twinkle/kernels")


def test_defaults_of_the_request(fake_worker, tmp_path):
    twinkle = fake_worker("event({'result': {'request': request}})")
    request = twinkle("kernelize", "model.pt", "--map", "empty.map.json", "-vv", "--json").json["request"]
    assert request["output"] == str(tmp_path / "model.kernelized.pt")
    assert request["fallback"] == ["true"] and request["mode"] is None
    request = twinkle(*KERNELIZE, "--strict", "--dry-run", "--json").json["request"]
    assert request["output"] is None and request["dry_run"] and request["strict"]
    assert request["fallback"] == ["false"]
    request = twinkle("run", "model.pt", "--json", "--inputs", "int64[1,8]:0..32;float16[2]", "--kernels", "libexec",
                      "--method", "generate").json["request"]
    assert request["inputs"] == "int64[1,8]:0..32;float16[2]" and request["method"] == "generate"
    assert request["kernel_dirs"][0] == str(tmp_path / "libexec") and request["output"] is None


def test_a_report_as_json(fake_worker):
    done = fake_worker(FINISH)(*KERNELIZE, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == REPORT


def test_a_report_for_a_person(fake_worker):
    done = fake_worker(FINISH)(*KERNELIZE)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["sites", "where", "status", "kernel", "error", "allowed", "because"]
    assert lines[1].startswith("1 × LlamaRMSNorm ") and "1.2e-7" in lines[1] and "bound by" not in lines[1]
    assert "model.layers.0.post_attention_layernorm" in lines[1] and "its error is larger" in lines[2]
    assert "1 replaced, 1 kept, 1 put back" in done.out
    assert lines[-2:] == ["whole model: error 2.0e-7 (allowed 3.0e-7)",
                          "verified on the given inputs (int64[1,8]), and with batch 2"]
    assert "mind the gap" in done.err and "wrote fast.pt" in done.err
    assert "\x1b" not in done.out
    assert "wrote" not in fake_worker(FINISH)(*KERNELIZE, "--quiet").err


def test_every_site_with_v(fake_worker):
    lines = fake_worker(FINISH)(*KERNELIZE, "-v").out.splitlines()
    assert lines[0].split() == ["site", "of", "status", "kernel", "error", "allowed", "because"]
    assert lines[1].startswith("model.layers.0.post_attention_layernorm ") and "bound by the preset" in lines[1]


def test_a_report_at_100_columns(fake_worker):
    done = fake_worker(FINISH)(*KERNELIZE, env={"COLUMNS": "100"})
    assert max(map(len, done.out.splitlines())) <= 100
    assert "LlamaRMSNorm" in done.out and "attention_layernorm" in done.out
    assert "[2] no kernel fits" in done.out
    assert "every kernel is from twinkle-pack" in done.out


def test_progress_is_for_terminals(fake_worker):
    program = ("event({'event': 'stage', 'stage': 'load-model', 'what': 'model.pt'})\n"
               "event({'event': 'progress', 'done': 3, 'total': 3, 'what': 'sites'})\n" + FINISH)
    assert "loading the model" not in fake_worker(program)(*KERNELIZE).err
    shown = fake_worker(program).on_terminal(*KERNELIZE).out
    assert "loading the model model.pt" in shown and "sites  3/3" in shown
    assert "loading the model" not in fake_worker(program).on_terminal("-q", *KERNELIZE).out


def test_logs_and_words(fake_worker):
    program = ("print('to stdout', flush=True)\n"
               "print('to stderr \\x1b[31m', file=sys.stderr, flush=True)\n"
               "for level in ('trace', 'warning', 'unheard-of'):\n"
               "    event({'event': 'log', 'level': level, 'text': level + ' text'})\n" + FINISH)
    plain = fake_worker(program)(*KERNELIZE)
    assert plain.code == 0 and "stdout" not in plain.out + plain.err
    assert "to stderr \\x1B[31m" in plain.err
    assert "warning: warning text" in plain.err and "trace text" not in plain.err and "unheard-of" not in plain.err
    loud = fake_worker(program)(*KERNELIZE, "-vv")
    assert "trace text" in loud.err and "unheard-of text" in loud.err and "to stdout" in loud.err and "stdout" not in loud.out
    quiet = fake_worker(program)(*KERNELIZE, "-q")
    assert "trace text" not in quiet.err and "warning text" in quiet.err
    machine = fake_worker(program)(*KERNELIZE, "--json")
    assert machine.err == "" and "warning text" in machine.json["warnings"]


@pytest.mark.parametrize("code, status", [("failed", 1), ("malformed", 2), ("not-found", 3), ("verification", 4),
                                          ("unreachable", 5), ("refused", 6), ("out-of-date", 7),
                                          ("interrupted", 130), ("never heard of", 1)])
def test_the_worker_s_errors(fake_worker, code, status):
    error = {"code": code, "exit": 99, "what": "it cannot", "where": "here", "why": "because", "hint": "do so"}
    twinkle = fake_worker(f"event({{'error': {error!r}}})\nsys.exit(1)")
    done = twinkle(*KERNELIZE)
    assert done.code == status and done.out == ""
    assert done.err == "error: it cannot\n  where: here\n  why:   because\n  hint:  do so\n"
    assert twinkle(*KERNELIZE, "--json").error["what"] == "it cannot"


@pytest.mark.parametrize("end, words", [
    ("os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
    ("os.kill(os.getpid(), signal.SIGABRT)", "signal 6"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "memory"),
    ("sys.exit(77)", "exit status 77"),
    ("sys.exit(0)", "without a result"),
    ("raw(b'garbage\\n')", "not its protocol"),
    ("raw(b'[1, 2]\\n')", "not its protocol"),
    ("raw(b'{}\\n')", "not its protocol"),
    ("raw(b'{\"event\": 3}\\n')", "not its protocol"),
    ("raw(b'{\"result\": 3}\\n')", "not its protocol"),
    ("raw(b'\\xff\\xfe\\x00\\n')", "not its protocol"),
    ("raw(b'[' * 1000000 + b'\\n')", "not its protocol"),
    ("raw(b'{\"event\":\"log\",\"event\":\"log\"}\\n')", "not its protocol"),
    ("raw(b'{\"result\": ')", "not its protocol"),
    ("print('the last straw', file=sys.stderr, flush=True); os.abort()", "the last straw"),
])
@pytest.mark.parametrize("stage", [None, "load-model", "load-kernel", "compile", "verify", "save"])
def test_a_worker_that_ends_badly(fake_worker, end, words, stage):
    begin = f"event({{'event': 'stage', 'stage': {stage!r}, 'what': 'some-thing'}})\n" if stage else ""
    done = fake_worker(begin + end)(*KERNELIZE, "--json")
    assert done.out == ""
    assert words in done.err
    if stage == "load-kernel":
        assert done.code == 6 and done.error["code"] == "refused" and "kernel some-thing" in done.error["what"]
    else:
        assert done.code == 1 and done.error["code"] == "failed"
        assert stage is None or done.error["where"] == "some-thing"


def test_a_line_without_end(fake_worker):
    done = fake_worker("block = b'x' * (1 << 20)\nwhile True: raw(block)")(*KERNELIZE, "--json")
    assert done.code == 1 and "64 MiB" in done.error["why"]


def test_more_after_the_result(fake_worker):
    done = fake_worker(FINISH + FINISH)(*KERNELIZE, "--json")
    assert done.code == 1 and "more after its result" in done.error["why"]


def test_a_crash_after_the_result_keeps_the_result(fake_worker):
    done = fake_worker(FINISH + "os.abort()")(*KERNELIZE, "--json")
    assert done.code == 0
    assert any("signal 6" in warning for warning in done.json["warnings"])


def test_a_report_that_is_none(fake_worker):
    for result in ({}, {"sites": 3, "whole": [], "warnings": 7}, {"sites": [1, None, {"site": 5}]}):
        done = fake_worker(f"event({{'result': {result!r}}})")(*KERNELIZE)
        assert done.code == 0 and "0 replaced" in done.out


def test_a_grandchild_that_stays(fake_worker):
    start = time.monotonic()
    done = fake_worker(FINISH + "if os.fork() == 0:\n    time.sleep(30)\n    os._exit(0)\n")(*KERNELIZE)
    assert done.code == 0 and time.monotonic() - start < 20


def test_a_worker_that_cannot_be_started(fake_worker, tmp_path):
    twinkle = fake_worker("")
    (tmp_path / "libexec/torch2.13-cpu/twinkle-worker").chmod(0o644)
    done = twinkle(*KERNELIZE, "--json")
    assert done.code == 1 and "Permission denied" in done.error["why"]


def wait_for(path, seconds=20):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("handler", ["", "signal.signal(signal.SIGINT, lambda *_: (open('cleaned', 'w'), os._exit(9)))\n"])
def test_interrupt(fake_worker, tmp_path, number, handler):
    twinkle = fake_worker(handler + "open('started', 'w').close()\ntime.sleep(30)\n")
    process = twinkle.start(*KERNELIZE, "--json")
    wait_for(tmp_path / "started")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out == b""
    assert json.loads(err)["error"]["code"] == "interrupted"
    assert (tmp_path / "cleaned").exists() == bool(handler)
    assert not (tmp_path / "fast.pt").exists()


def test_a_second_interrupt_kills(fake_worker, tmp_path):
    twinkle = fake_worker("signal.signal(signal.SIGINT, lambda *_: open('heard', 'w').close())\n"
                          "open('started', 'w').close()\nwhile True: time.sleep(1)\n")
    process = twinkle.start(*KERNELIZE)
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    wait_for(tmp_path / "heard")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and b"interrupted" in err


def test_the_worker_dies_with_the_command_line(fake_worker, tmp_path):
    twinkle = fake_worker("open('pid.new', 'w').write(str(os.getpid()))\nos.rename('pid.new', 'pid')\n"
                          "time.sleep(60)\n")
    process = twinkle.start(*KERNELIZE)
    wait_for(tmp_path / "pid")
    worker = int((tmp_path / "pid").read_text())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = open(f"/proc/{worker}/stat").read().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":  # nobody reaps it here
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker is still there")


def test_run_and_inspect_show_what_the_worker_says(fake_worker):
    results = {
        "run": {"schema": "x", "outputs": [{"name": "logits", "dtype": "float32", "shape": [1, 8, 32]}], "time_ms": 3.5},
        "inspect": {"schema": "x", "kind": "traced", "classes": [{"name": "pkg.Norm", "instances": 3}]}}
    words = {"run": ("logits", "1, 8, 32", "time ms: 3.5"), "inspect": ("traced TorchScript model", "pkg.Norm")}
    for command, result in results.items():
        twinkle = fake_worker(f"event({{'result': {result!r}}})")
        done = twinkle(command, "model.pt")
        assert done.code == 0 and all(word in done.out for word in words[command])
        assert twinkle(command, "model.pt", "--json").json["schema"] == f"twinkle.{command}/1"


@pytest.mark.parametrize("result", [
    {"classes": 3, "functions": [1, None], "bindings": {"a": []}, "operators": ["x"], "kernels": [[]], "kind": 5},
    {"classes": [{"name": 1, "instances": "x"}], "bindings": [{"class": 1, "kept": [3], "layers": [None]}],
     "binding_notes": [1], "manifest": 3, "training": "yes", "parameters": -1}])
def test_an_inspection_of_another_shape(fake_worker, result):
    """The worker runs no kernel here, but is not believed all the same."""
    twinkle = fake_worker(f"event({{'result': {result!r}}})")
    assert twinkle("inspect", "model.pt").code in (0, 1)
    assert twinkle("inspect", "model.pt", "--json").code in (0, 1)
