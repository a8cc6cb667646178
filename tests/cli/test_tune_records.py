"""What a running server got is recorded, without its data, and tuned later: alone, in shards, or by several at once."""

import concurrent.futures
import json
import subprocess
import time

import pytest
from conftest import ROOT, environment
from kernels_for_tests import AMPLE, NO_TIME, RUNTIMES, needs_runtime
from test_preload import compile_server, serve
from test_tune_sizes import Doubling, model_and_packages, parts  # noqa: F401

torch = pytest.importorskip("torch")

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SERVER = r"""
#include <torch/script.h>

#include <cstdlib>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
    const char* nested = std::getenv("NESTED");
    const int depth = nested ? std::atoi(nested) : 0;
    torch::jit::Module model = torch::jit::load(argv[1]);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            const torch::NoGradGuard no_grad;
            for (int i = 2; i < argc; ++i) {
                const int rows = std::stoi(argv[i]);  // below zero: too wide for the model
                c10::IValue input = torch::ones({std::abs(rows), rows < 0 ? 65 : 64});
                for (int n = 0; n < depth; ++n) {
                    input = c10::ivalue::Tuple::create(std::vector<c10::IValue>{input});
                }
                try {
                    model.forward({input});
                } catch (const std::exception&) {
                    if (rows > 0) throw;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}
"""


@pytest.fixture(scope="module", name="server")
def compiled_server(tmp_path_factory):
    return compile_server(SERVER, tmp_path_factory.mktemp("server") / "server", "-pthread")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def recorded(folder, sizes, name="calls.jsonl"):
    (folder / name).write_text("".join(
        json.dumps({"record": 1, "model": "Model", "inputs": f"float32[{rows},64]"}) + "\n" for rows in sizes))
    return name


def measured(report):
    """Who was measured, and in which sizes."""
    return {(site["site"], one["rows"], one["kernel"]): one["us"] for site in report["sites"] for one in site.get("measured", [])}


def test_a_server_s_calls_are_recorded_and_tuned(project, server):
    project.kernelized(["small"], "--inputs", "float32[128,64]", output="served.pt")
    record = project.folder / "calls.jsonl"
    done = serve(server, project.folder / "served.pt", "1", "2", "100", "101", "1", TWINKLE_RECORD=str(record))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    calls = lines(record)
    assert {one["model"].rpartition(".")[2] for one in calls} == {"Model"} and len(calls) == 3
    assert {one["inputs"] for one in calls} in ({"float32[1,64]", "float32[2,64]", f"float32[{n},64]"} for n in (100, 101))
    # A model without kernels is none of it.
    assert serve(server, project.folder / "model.pt", "7", TWINKLE_RECORD=str(record)).returncode == 0
    assert lines(record) == calls
    project.bind(["small", "large"])
    done = project("tune", "model.pt", "--from", record, "--budget", AMPLE, "--json", "-o", "tuned.pt")
    assert done.code == 0, done.err
    for site in done.json["sites"]:
        assert {one["rows"] for one in site["measured"]} >= {1, 128}
        assert parts(site)[0][1] == "small" and parts(site)[-1] == (None, "large")


def test_calls_that_throw_are_not_recorded(project, server):
    project.kernelized(["small"], "--inputs", "float32[128,64]", output="served.pt")
    record = project.folder / "calls.jsonl"
    done = serve(server, project.folder / "served.pt", "-3", "2", "-3", "7", TWINKLE_RECORD=str(record))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert {one["inputs"] for one in lines(record)} == {"float32[2,64]", "float32[7,64]"}


def test_a_record_that_cannot_be_written_stops_no_server(project, server):
    project.kernelized(["small"], "--inputs", "float32[128,64]", output="served.pt")
    done = serve(server, project.folder / "served.pt", "1", TWINKLE_RECORD=str(project.folder / "no/calls.jsonl"))
    assert done.returncode == 0 and done.stderr.count("twinkle: ") == 1 and "calls cannot be recorded" in done.stderr
    done = serve(server, project.folder / "served.pt", "1", TWINKLE_RECORD="/dev/full")
    assert done.returncode == 0 and "calls cannot be recorded" in done.stderr


class Nested(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Doubling()

    def forward(self, x):
        while isinstance(x, tuple):
            x, = x
        return self.first(x)


@pytest.mark.parametrize("depth", [8, 9])
def test_a_call_that_is_nested_too_deeply_cannot_be_repeated(project, server, depth):
    nested = torch.ones(3, 64)
    for _ in range(depth):
        nested = (nested,)
    torch.jit.trace(Nested().eval(), (nested,)).save(project.folder / "nested.pt")
    project.kernelized(["small"], "--mode", "inference", "--device", "cpu", model="nested.pt", output="served.pt")
    record = project.folder / "calls.jsonl"
    done = serve(server, project.folder / "served.pt", "1", "100", TWINKLE_RECORD=str(record), NESTED=str(depth))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    calls = lines(record)
    if depth == 8:
        assert {one["inputs"] for one in calls} == {f"{'(' * 8}float32[{rows},64]{')' * 8}" for rows in (1, 100)}
        done = project("tune", "nested.pt", "--device", "cpu", "--from", record, "--budget", "1", "--json")
        assert done.code == 0 and "cannot be read" not in done.err, done.err
    else:  # whatever is in it
        call, = calls
        assert "8 deep" in call["unfit"] and "inputs" not in call


def test_calls_of_another_model_and_calls_that_failed_are_named(project):
    project.bind(["small", "large"])
    (project.folder / "calls.jsonl").write_text("".join(
        json.dumps({"record": 1, "model": "__torch__.Other", "inputs": f"float32[{shape}]"}) + "\n" for shape in ("16,64", "16,65", "8,64")))
    done = project("tune", "model.pt", "--from", "calls.jsonl", "--inputs", "float32[32,64]", "--budget", NO_TIME, "--json")
    assert done.code == 0, done.err
    warnings = done.json["warnings"]
    assert sum("__torch__.Other" in one and "this model is" in one for one in warnings) == 1, warnings
    assert sum("does not take float32[16,65]" in one for one in warnings) == 1, warnings


def test_the_first_recorded_call_may_have_failed(project):
    project.bind(["small", "large"])
    (project.folder / "calls.jsonl").write_text("".join(
        json.dumps({"record": 1, "model": "Model", "inputs": f"float32[{shape}]"}) + "\n" for shape in ("16,65", "9,9", "8,64", "4,64")))
    done = project("tune", "model.pt", "--from", "calls.jsonl", "--budget", NO_TIME, "--json")
    assert done.code == 0, done.err
    lost = [one for one in done.json["warnings"] + done.err.splitlines() if "does not take" in one]
    assert [shape in " ".join(lost) for shape in ("[16,65]", "[9,9]", "[8,64]", "[4,64]")] == [True, True, False, False]
    (project.folder / "calls.jsonl").write_text(json.dumps({"record": 1, "model": "Model", "inputs": "float32[16,65]"}) + "\n")
    done = project("tune", "model.pt", "--from", "calls.jsonl", "--budget", NO_TIME, "--json")
    assert done.code == 2 and "cannot be run on these inputs" in done.error["what"], done.err


def test_twinkle_itself_records_nothing(project):
    project.env["TWINKLE_RECORD"] = project.folder / "calls.jsonl"
    project.kernelized(["small"])
    assert project("run", "tuned.pt", "--inputs", "float32[7,64]").code == 0
    assert not (project.folder / "calls.jsonl").exists()


def test_shards_merge_to_what_one_run_measures(project):
    project.bind(["small", "large"])
    record = recorded(project.folder, (1, 4, 16, 32, 128))
    whole = project("tune", "model.pt", "--from", record, "--budget", AMPLE, "--json")
    assert whole.code == 0, whole.err
    exports, seen = [], set()
    for number in (1, 2, 3):
        project.env["XDG_CACHE_HOME"] = project.folder / f"node{number}"
        done = project("tune", "model.pt", "--from", record, "--shard", f"{number}/3", "--budget", AMPLE, "--json")
        assert done.code == 0, done.err
        mine = set(measured(done.json))
        assert not seen & mine  # nobody measures what is another's
        seen |= mine
        assert project("tune", "export", f"{number}.json").code == 0
        exports.append(f"{number}.json")
    assert seen == set(measured(whole.json))
    project.env["XDG_CACHE_HOME"] = project.folder / "all"
    assert project("tune", "merge", *reversed(exports), "-o", "all.json").code == 0
    assert project("tune", "import", "all.json").code == 0
    merged = project("tune", "model.pt", "--from", record, "--budget", NO_TIME, "--json", "-o", "tuned.pt")
    assert merged.code == 0 and set(measured(merged.json)) == seen
    assert [parts(site) for site in merged.json["sites"]] == [parts(site) for site in whole.json["sites"]]
    assert parts(merged.json["sites"][0]) == [(64, "small"), (None, "large")]


def test_two_runs_at_once_measure_nothing_twice(project):
    project.bind(["small", "large"])
    arguments = ("tune", "model.pt", "--inputs", "float32[128,64]", "--tune-sizes", "1,16", "--budget", AMPLE, "--json")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: project(*arguments), range(2))
    assert (first.code, second.code) == (0, 0), first.err + second.err
    # Had both measured, no two times would be equal.
    assert measured(first.json) == measured(second.json) and len(measured(first.json)) >= 9
    assert not list((project.folder / "cache").rglob("lease"))


def test_a_run_that_was_killed_holds_nobody_up(project):
    project.bind(["small", "large"])
    arguments = ("tune", "model.pt", "--inputs", "float32[128,64]", "--budget", "3", "--json")
    killed = project.start(*arguments)
    deadline = time.monotonic() + 40
    while not list((project.folder / "cache").rglob("lease")) and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    time.sleep(0.3)  # its worker dies with it
    done = project(*arguments)
    assert done.code == 0 and any(site["measured"] for site in done.json["sites"])


@pytest.mark.parametrize("record, arguments, words", [
    ("", ["model.pt"], "no run of a kernelized model is recorded"),
    ("no record", ["model.pt"], "it is no record of a server"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}\n{"record":1,"model":"B","inputs":"float32[3,64]"}', ["model.pt"],
     "runs of several models are recorded: A, B"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}', ["model.pt", "--recorded", "B"], "no run of a model B"),
    ('{"record":1,"model":"A","unfit":"input 1 is a list"}', ["model.pt"], "no call of the model can be repeated"),
    ('{"record":1,"model":"A","inputs":"(float32[3,64]"}', ["model.pt"], "it is no record of a server"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}', [], "no call of an operation is recorded"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}', ["model.pt", "--shard", "3/2"], "--shard cannot be '3/2'"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}', ["model.pt", "--shard", "1/2", "-o", "t.pt"], "a share alone knows too little"),
    ('{"record":1,"model":"A","inputs":"float32[3,64]"}', ["model.pt", "--devices", "7"], "--devices cannot be '7'"),
])
def test_wrong_usage(project, record, arguments, words):
    (project.folder / "calls.jsonl").write_text(record)
    done = project("tune", *arguments, "--from", "calls.jsonl")
    assert done.code in (2, 3) and words in done.err, done.err
    assert project("tune").code == 2


@pytest.mark.parametrize("options, words", [
    (["--graphs"], "--graphs"), (["--freeze"], "--freeze"), (["--graphs", "--freeze"], "which is for a model"),
    (["--devices", "all"], "--devices"), (["--recorded", "A"], "--recorded"), (["--inputs", "float32[3,64]"], "--inputs"),
    (["--tune-sizes", "1,2"], "--tune-sizes"),
    (["-o", "tuned.pt"], "only merge and a model take -o")])
def test_calls_of_operations_take_no_option_of_models(twinkle, options, words):
    (twinkle.folder / "calls.jsonl").write_text("")
    done = twinkle("tune", "--from", "calls.jsonl", *options)
    assert done.code == 2 and words in done.err, done.err
    assert not (twinkle.folder / "tuned.pt").exists()


def test_a_model_of_a_record_needs_the_record(project):
    done = project("tune", "model.pt", "--inputs", "float32[128,64]", "--recorded", "A")
    assert done.code == 2 and "needs --from RECORD" in done.err


def test_all_devices_of_a_machine_without_a_gpu(project):
    project.bind(["small", "large"])
    done = project("tune", "model.pt", "--inputs", "float32[128,64]", "--budget", "2", "--devices", "all", "--json")
    assert done.code == 0 and any(site["measured"] for site in done.json["sites"])


def test_recorded_integers_get_the_ranges_of_the_given_inputs(twinkle):
    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = torch.nn.Embedding(50, 64), torch.nn.LayerNorm(64)

        def forward(self, ids, mask):
            return self.norm(self.table(ids)) * mask.unsqueeze(-1)

    twinkle.env["XDG_CACHE_HOME"] = twinkle.folder / "cache"
    torch.jit.trace(Embedding().eval(), (torch.zeros(1, 4, dtype=torch.long), torch.ones(1, 4))).save(twinkle.folder / "model.pt")
    (twinkle.folder / "calls.jsonl").write_text("".join(
        json.dumps({"record": 1, "model": "Embedding", "inputs": f"int64[1,{n}];float32[1,{n}]"}) + "\n" for n in (3, 40)))
    done = twinkle("tune", "model.pt", "--from", "calls.jsonl", "--inputs", "int64[1,8]:0..50;float32[1,8]", "--budget", "2", "--json")
    assert done.code == 0, done.err
    assert {"int64[1,3];float32[1,3]", "int64[1,40];float32[1,40]", "int64[1,8];float32[1,8]"} <= {
        shape["inputs"] for shape in done.json["shapes"]}


def test_recorded_tuples_and_lists_are_repeated(twinkle):
    class Parts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = torch.nn.Embedding(50, 64), torch.nn.LayerNorm(64)

        def forward(self, pair: tuple[torch.Tensor, torch.Tensor], more: list[torch.Tensor]) -> torch.Tensor:
            return self.norm(self.table(pair[0]) + more[0]) * pair[1].unsqueeze(-1)

    twinkle.env["XDG_CACHE_HOME"] = twinkle.folder / "cache"
    torch.jit.script(Parts().eval()).save(twinkle.folder / "model.pt")
    (twinkle.folder / "calls.jsonl").write_text("".join(
        json.dumps({"record": 1, "model": "Parts", "inputs": f"(int64[1,{n}];float32[1,{n}]);[float32[1,{n},64]]"}) + "\n"
        for n in (3, 40)))
    given = "(int64[1,8]:40..50;float32[1,8]);[float32[1,8,64]]"
    done = twinkle("tune", "model.pt", "--from", "calls.jsonl", "--inputs", given, "--budget", "2", "--json", "-o", "tuned.pt")
    assert done.code == 0, done.err
    assert any(site["measured"] for site in done.json["sites"])
    assert twinkle("run", "tuned.pt", "--inputs", given).code == 0
    wrong = twinkle("run", "tuned.pt", "--inputs", "(int64[1,8];float32[1,8]")
    assert wrong.code == 2 and "these are no inputs" in wrong.err


RECORDED = r"""
#include <twinkle/tuning.h>
#include <torch/types.h>

int main() {
    for (const int rows : {3, 4, 60, 64}) {
        twinkle::ops::rms_norm(torch::ones({rows, 128}), torch::ones({128}));
        twinkle::ops::silu(torch::ones({rows, 128}));
    }
    twinkle::record_invocation({.operation = "mine::thing"});
}
"""


def test_calls_of_operations_are_recorded_and_tuned(twinkle):
    twinkle.env |= {"XDG_CACHE_HOME": twinkle.folder / "cache", "OMP_NUM_THREADS": "1"}  # no grain to choose
    program = compile_server(RECORDED, twinkle.folder / "program", f"-I{ROOT}/include", f"-L{RUNTIMES[0].parent}",
                             f"-Wl,-rpath,{RUNTIMES[0].parent}", "-Wl,--no-as-needed", "-ltwinkle")
    record = twinkle.folder / "calls.jsonl"
    done = subprocess.run([program], env=environment(TWINKLE_RECORD=str(record), **twinkle.env), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    operations = sorted(line["invocation"]["operation"] for line in lines(record))
    assert operations == ["mine::thing"] + ["twinkle-pack::rms_norm"] * 2 + ["twinkle-pack::silu"] * 2
    done = twinkle("tune", "--from", record, "--budget", "5", "--json")
    assert done.code == 0, done.err
    found = {(one["operation"], one["problem"] is None) for one in done.json["operations"]}
    assert found == {("twinkle-pack::rms_norm", True), ("twinkle-pack::silu", True), ("mine::thing", False)}
    assert len(twinkle("tune", "show", "--json").json["measurements"]) == 8
    split = [twinkle("tune", "--from", record, "--shard", f"{i}/2", "--budget", "1", "--json").json["operations"] for i in (1, 2)]
    assert sorted(one["invocation"] for part in split for one in part) == sorted(
        one["invocation"] for one in done.json["operations"])
    assert "mine::thing" in twinkle("tune", "--from", record, "--budget", "1").out
