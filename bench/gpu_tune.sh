#!/usr/bin/env bash
# What tuning does on this machine's GPUs: the operators beside an exhaustive search, a model on all GPUs at once, and its
# runs as CUDA graphs decided before it is saved. Some five minutes, of them SECONDS for the operators.
#
#   gpu_tune.sh BUILD_FOLDER [-o FILE.md] [SECONDS]
set -eu
build=$1
shift
output=()
if [ "${1:-}" = -o ]; then
    output=(-o "$2")
    shift 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
gpus=$(nvidia-smi --list-gpus | wc -l)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$build/bin:$PATH
failed=0

echo "--- operators beside an exhaustive search; devices_with_config on $gpus GPUs"
python3 "$root/bench/tuning_bench.py" "$build" --device cuda --gpus "$gpus" --seconds "${1:-150}" "${output[@]}" || failed=1

model=$root/examples/tiny-llama/traced.pt
inputs=(--inputs "int64[2,128]:0..90" --tune-sizes 1,16)
echo "--- tune --devices all, beside a run on one GPU"
XDG_CACHE_HOME=$work/all twinkle --json tune "$model" "${inputs[@]}" --device cuda --devices all --budget 60 -o "$work/all.pt" \
    > "$work/all.json" || failed=1
XDG_CACHE_HOME=$work/one twinkle --json tune "$model" "${inputs[@]}" --device cuda --devices 0 --budget 60 -o "$work/one.pt" \
    > "$work/one.json" || failed=1
python3 - "$work/all.json" "$work/one.json" <<'PYTHON' || failed=1
import json, sys
reports = [json.load(open(path)) for path in sys.argv[1:]]
measured = [{(site["site"], one["rows"], one["kernel"]) for site in report["sites"] for one in site.get("measured", [])}
            for report in reports]
for name, only in (("all", measured[0] - measured[1]), ("one", measured[1] - measured[0])):
    if only: print(f"only with {name}:", sorted(only)[:8])
choices = [{site["site"]: (site["status"], site["kernel"], json.dumps(site.get("by_size"))) for site in report["sites"]}
           for report in reports]
same = sum(choices[0][site] == choices[1][site] for site in choices[1])
print(f"measured: {len(measured[0])} on all GPUs, {len(measured[1])} on one; equal sets: {measured[0] == measured[1]}; "
      f"choices equal: {same} of {len(choices[1])} (others must be ties)")
sys.exit(0 if measured[0] == measured[1] and measured[0] else 1)
PYTHON

echo "--- plain or as CUDA graphs, decided before the model is saved"
XDG_CACHE_HOME=$work/graphs twinkle --json kernelize "$model" -o "$work/graphs.pt" --graphs --tune --budget 20 --device cuda \
    --no-measure "${inputs[@]}" > "$work/graphs.json" || failed=1
python3 - "$work/graphs.json" <<'PYTHON' || failed=1
import json, sys
shapes = json.load(open(sys.argv[1])).get("graphs_by_shape", [])
for one in shapes:
    print(f"{one['inputs']}: {'replayed' if one['replayed'] else 'plain, ' + one['because']}; "
          f"{one['plain_us']:.0f} us plain, {one['replay_us']:.0f} us replayed")
sys.exit(0 if shapes else 1)
PYTHON
exit $failed
