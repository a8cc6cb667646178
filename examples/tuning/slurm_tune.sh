#!/bin/bash
# Tunes what a server has recorded, as an array of Slurm jobs:
#
#     RECORD=calls.jsonl RESULTS=/shared/measured sbatch slurm_tune.sh
#     twinkle tune merge /shared/measured/*.json -o measured.json      when all have ended
#
# MODEL=model.pt: the calls of that model, not those of operations. OPTIONS="--budget 120": for twinkle tune.
#SBATCH --job-name=twinkle-tune
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --time=00:30:00
set -eu
mkdir -p "$RESULTS"
# A store of its own, on this node: file systems that many nodes share are slow, and none needs another's.
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
first=${SLURM_ARRAY_TASK_MIN:-1}
shard=$((SLURM_ARRAY_TASK_ID - first + 1))/$SLURM_ARRAY_TASK_COUNT
# shellcheck disable=SC2086  # options are words
twinkle tune ${MODEL:+"$MODEL"} --from "$RECORD" --shard "$shard" ${OPTIONS:-}
twinkle tune export "$RESULTS/$SLURM_ARRAY_TASK_ID.json"
