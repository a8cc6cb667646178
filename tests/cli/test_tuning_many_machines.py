"""The examples for Ray, Slurm and Kubernetes: each share of a record elsewhere, the merged result that of a single run."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAM, ROOT, environment
from kernels_for_tests import needs_runtime

pytestmark = needs_runtime
EXAMPLES = ROOT / "examples/tuning"
SHARDS = 4


def invocation(rows):
    return {"operation": "twinkle-pack::rms_norm", "device": "cpu", "mode": "inference",
            "inputs": [{"dtype": "float32", "layout": "dense", "sizes": [rows, 512], "alignment": 16}, {"dtype": "none"},
                       {"dtype": "float"}, {"dtype": "float"}, {"dtype": "bool", "value": "false"}]}


@pytest.fixture(name="work")
def record_and_program(twinkle):
    """Where the bundled norm is several times as fast as LibTorch's operators, whatever else runs on the machine."""
    (twinkle.folder / "calls.jsonl").write_text("".join(
        json.dumps({"record": 1, "invocation": invocation(1 << i)}) + "\n" for i in range(2, 10)))
    (twinkle.folder / "bin").mkdir()
    (twinkle.folder / "bin/twinkle").symlink_to(PROGRAM)
    twinkle.env |= {"PATH": f"{twinkle.folder / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                    "XDG_CACHE_HOME": twinkle.folder / "cache"}
    return twinkle


def outcome(work, file):
    """What was measured, and what is chosen of it."""
    work.env["XDG_CACHE_HOME"] = work.folder / f"store_of_{file}"
    assert work("tune", "import", file).code == 0
    measured = work("tune", "show", "--json").json["measurements"]
    return {(one["invocation"]["inputs"][0]["sizes"][0], one["candidate"]["cfg"]["implementation"], one["chosen"])
            for one in measured}


def test_shares_are_what_one_run_measures(work):
    assert work("tune", "--from", "calls.jsonl", "--budget", "5").code == 0
    assert work("tune", "export", "single.json").code == 0
    single = outcome(work, "single.json")
    assert len(single) == 16 and sum(chosen for _, _, chosen in single) == 8

    for number in range(1, SHARDS + 1):  # Slurm, one task after the other
        done = subprocess.run(["bash", EXAMPLES / "slurm_tune.sh"], cwd=work.folder, capture_output=True, text=True, env=environment(
            **work.env, RECORD="calls.jsonl", RESULTS="slurm", OPTIONS="--budget 3", SLURM_ARRAY_TASK_ID=str(number + 6),
            SLURM_ARRAY_TASK_MIN="7", SLURM_ARRAY_TASK_COUNT=str(SHARDS)))
        assert done.returncode == 0, done.stderr
    files = sorted((work.folder / "slurm").iterdir())
    assert [file.name for file in files] == ["10.json", "7.json", "8.json", "9.json"]
    assert work("tune", "merge", *files, "-o", "slurm.json").code == 0
    assert outcome(work, "slurm.json") == single


def test_an_indexed_job_of_kubernetes(work):
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((EXAMPLES / "kubernetes_tune.yaml").read_text())
    assert job["kind"] == "Job" and job["spec"]["completionMode"] == "Indexed"
    container, = job["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert int(variables["SHARDS"]) == job["spec"]["completions"]
    measured = []
    for index in (0, 1):
        done = subprocess.run([*container["command"], *container["args"]], cwd=work.folder, capture_output=True, text=True, env=environment(
            **{**work.env, **variables, "RECORD": "calls.jsonl", "RESULTS": "pods", "SHARDS": "2", "JOB_COMPLETION_INDEX": str(index),
               "XDG_CACHE_HOME": str(work.folder / f"pod{index}")}))
        assert done.returncode == 0, done.stderr
        export = json.loads((work.folder / f"pods/{index}.json").read_text())
        measured.append({json.dumps(entry["invocation"], sort_keys=True) for one in export["environments"] for entry in one["entries"]})
    assert not measured[0] & measured[1] and len(measured[0] | measured[1]) == 8


def test_a_cluster_of_ray(work):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster
    # Nodes see the driver's environment.
    program = f"""
import os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 1, "include_dashboard": False}})
for _ in range({SHARDS} - 1):
    cluster.add_node(num_cpus=1)
sys.argv = ["ray_tune.py", "calls.jsonl", "-o", "ray.json", "--address", cluster.address, "--budget", "3"]
sys.path.insert(0, {str(EXAMPLES)!r})
import ray_tune
ray_tune.main()
import ray
ray.shutdown()
cluster.shutdown()
"""
    assert Cluster
    assert work("tune", "--from", "calls.jsonl", "--budget", "5").code == 0
    assert work("tune", "export", "single.json").code == 0
    single = outcome(work, "single.json")
    done = subprocess.run([sys.executable, "-c", program], cwd=work.folder, capture_output=True, text=True, timeout=240,
                          env=environment(**work.env, PYTHONPATH=os.environ.get("PYTHONPATH", "")))
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(work, "ray.json") == single


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.sh")))
def test_the_syntax_of_shell_scripts(script):
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    if shutil.which("shellcheck"):
        assert subprocess.run(["shellcheck", script]).returncode == 0
