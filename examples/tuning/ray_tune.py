#!/usr/bin/env python3
"""Tunes what a server has recorded on all nodes of a Ray cluster, and writes one file of measurements.

    ray_tune.py calls.jsonl -o measured.json                        the calls of operations
    ray_tune.py calls.jsonl --model model.pt -o measured.json       those of a model

Each node needs twinkle in its PATH. Nodes of one kind share the work (--shard); what comes from nodes of another kind is
kept apart in the result. `twinkle tune import measured.json` takes it over anywhere.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import ray


@ray.remote(scheduling_strategy="SPREAD", max_retries=2)
def tune_shard(number: int, of: int, record: bytes, model: bytes | None, options: list[str]) -> bytes:
    """One share, with a store of its own, so that shares on one node do not meet. Returns the export."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "calls.jsonl").write_bytes(record)
        command = ["twinkle", "--json", "tune"]
        if model is not None:
            (root / "model.pt").write_bytes(model)
            command.append("model.pt")
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        for arguments in ([*command, "--from", "calls.jsonl", "--shard", f"{number}/{of}", *options],
                          ["twinkle", "tune", "export", "measured.json"]):
            done = subprocess.run(arguments, cwd=root, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
        return (root / "measured.json").read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--address", default="auto", help="the cluster's (default: the one of this machine)")
    parser.add_argument("--shards", type=int, help="default: one for each node")
    parser.add_argument("--cpus", type=float, default=1, help="of a share: as many threads as a server has")
    parser.add_argument("--gpus", type=float, default=0)
    arguments, options = parser.parse_known_args()  # what is left is for twinkle tune: --budget 60

    ray.init(address=arguments.address, log_to_driver=False)
    shards = arguments.shards or sum(node["Alive"] for node in ray.nodes())
    record = ray.put(arguments.record.read_bytes())
    model = ray.put(arguments.model.read_bytes()) if arguments.model else None
    share = tune_shard.options(num_cpus=arguments.cpus, num_gpus=arguments.gpus)
    exports = ray.get([share.remote(number + 1, shards, record, model, options) for number in range(shards)])
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{number}.json" for number in range(shards)]
        for file, export in zip(files, exports):
            file.write_bytes(export)
        subprocess.run(["twinkle", "tune", "merge", *files, "-o", arguments.output], check=True)


if __name__ == "__main__":
    main()
