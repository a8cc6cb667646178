#!/usr/bin/env bash
# Uses an installed twinkle as somebody does who never saw the build; script/test-package runs it.
#
#   use.sh without-torch PREFIX EXAMPLES     what works without LibTorch, and what the rest says
#   use.sh with-torch PREFIX EXAMPLES        TWINKLE_TORCH or VIRTUAL_ENV names a LibTorch
#   use.sh python PREFIX EXAMPLES            the Python module of the wheel, in the environment PREFIX
#   use.sh own-model PREFIX EXAMPLES         a model that torch makes here: kernelized, verified, run in Python
#   use.sh server PREFIX EXAMPLES TORCH      a C++ server that knows nothing of twinkle; needs g++
#   use.sh own-server PREFIX EXAMPLES TORCH  the same, for a model that torch makes here
#   use.sh programs PREFIX EXAMPLES TORCH    that, and C and C++ programs built with find_package(twinkle); needs cmake too
#
# Prints a line for everything that was tried, and how long it took; the first that fails ends it.
set -euo pipefail

what=$1 prefix=$2 examples=$3
twinkle=$prefix/bin/twinkle
llama=$examples/tiny-llama
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

ok() { printf 'ok      %s\n' "$*"; }
now() { date +%s%N; }
fail() {
    printf 'FAILED  %s\n' "$*"
    [ ! -e said ] || cat said
    exit 1
}
# expect STATUS TEXT COMMAND…: the exit status, and a text in what it says.
expect() {
    local status=$1 text=$2 code=0 start
    shift 2
    start=$(now)
    "$@" >said 2>&1 || code=$?
    start=$((($(now) - start) / 1000000))
    [ $code = "$status" ] || fail "exit $code, not $status: $*"
    [ -z "$text" ] || grep -qF -e "$text" said || fail "'$text' is not said by: $*"
    ok "$(printf "%s " "${@/#$prefix/PREFIX}" | sed "s,$examples/,,g; s/ $//") ($((start / 1000)).$(printf %03d $((start % 1000))) s)"
}

without_torch() {
    expect 0 "twinkle 0." "$twinkle" --version
    expect 0 "Usage: twinkle kernelize" "$twinkle" kernelize --help
    expect 0 '"runtimes"' "$twinkle" env --json
    expect 0 "" "$twinkle" resolve --project "$llama" -o twinkle.map.json
    for command in "run $llama/traced.pt" "kernelize $llama/traced.pt --map twinkle.map.json"; do
        # shellcheck disable=SC2086  # words
        expect 3 "pip install torch==" "$twinkle" $command --inputs "$llama/inputs.pt"
        grep -q "TWINKLE_TORCH=DIR" said || fail "the hint does not name TWINKLE_TORCH"
    done
    [ -s "$prefix/share/man/man1/twinkle-kernelize.1" ] || [ -s "$prefix/share/man/man1/twinkle-kernelize.1.gz" ] ||
        fail "there is no manual page"
    ok "manual pages"
    bash -c "source '$prefix/share/bash-completion/completions/twinkle' && complete -p twinkle" >said ||
        fail "the completion of bash cannot be read"
    ok "completion of bash"
}

with_torch() {
    expect 0 "runtime: torch" "$twinkle" env
    expect 0 "" "$twinkle" resolve --project "$llama" -o twinkle.map.json
    expect 0 "7 replaced, 0 kept, 0 put back" "$twinkle" kernelize "$llama/traced.pt" --map twinkle.map.json \
        --inputs "$llama/inputs.pt" --verify -o fast.pt
    expect 0 "" "$twinkle" run fast.pt --inputs "$llama/inputs.pt" -o outputs.pt
    [ -s outputs.pt ] || fail "there are no outputs"
    expect 0 "twinkle-pack" "$twinkle" inspect fast.pt
}

python_module() {
    "$twinkle" -q kernelize "$llama/traced.pt" -o fast.pt >said
    cat >check.py <<'PYTHON'
import sys, torch, twinkle_kernels as t
model, inputs = torch.jit.load(sys.argv[1]), torch.load(sys.argv[2])
print(t.runtime, tuple(model(*(inputs if isinstance(inputs, (list, tuple)) else [inputs])).shape))
PYTHON
    expect 0 "(2, 128, 256)" "$prefix/bin/python" check.py fast.pt "$llama/inputs.pt"
}

make_own_model() {
    cat >model.py <<'PYTHON'
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

torch.manual_seed(1)
model = nn.Sequential(nn.Embedding(256, 64), *[Block() for _ in range(4)], nn.Linear(64, 256)).eval()
tokens = torch.randint(256, (2, 64))
torch.jit.trace(model, tokens).save("model.pt")
torch.save(tokens, "tokens.pt")
PYTHON
    expect 0 "" "$prefix/bin/python" model.py
    # A site whose sums this processor orders otherwise may be put back; what is written is right either way.
    expect 0 "replaced, 0 kept" "$twinkle" kernelize model.pt --inputs tokens.pt -o own.pt
    ! grep -q " 0 replaced" said || fail "nothing was replaced"
    grep -qF "verified on the given inputs" said || fail "the model is not verified"
}

own_model() {
    make_own_model
    expect 0 "2, 64, 256" "$twinkle" run own.pt --inputs tokens.pt -o outputs.pt
    cat >compare.py <<'PYTHON'
import torch, twinkle_kernels
tokens = torch.load("tokens.pt")
original, fast = (torch.jit.load(name)(tokens) for name in ("model.pt", "own.pt"))
torch.testing.assert_close(fast, original)
torch.testing.assert_close(torch.load("outputs.pt", weights_only=True), original)
print("alike")
PYTHON
    expect 0 "alike" "$prefix/bin/python" compare.py
}

# compile_server TORCH: plain, and the library to preload (the loader takes a space for the end of a name).
compile_server() {
    expect 0 "" g++ -std=c++20 -O0 -w -I"$1/include" -I"$1/include/torch/csrc/api/include" "$examples/cpp/plain.cpp" -o plain \
        -L"$1/lib" -Wl,-rpath,"$1/lib" -ltorch -ltorch_cpu -lc10
    ln -s "$prefix/lib/libtwinkle_preload.so" preload.so
}

own_server() {
    make_own_model
    compile_server "$1"
    expect 0 "[2, 64, 256]" ./plain model.pt
    expect 0 "$(cut -d ' ' -f 1-3 said)" env LD_PRELOAD="$work/preload.so" ./plain own.pt
}

server() {
    "$twinkle" -q kernelize "$llama/traced.pt" -o fast.pt >said
    compile_server "$1"
    expect 0 "[2, 64, 256]" ./plain "$llama/traced.pt"
    expect 0 "$(cut -d ' ' -f 1-3 said)" env LD_PRELOAD="$work/preload.so" ./plain fast.pt
    bash -c './plain fast.pt; exit' >said 2>&1 && fail "a kernelized model runs without its kernels"
    ok "without the preload library it is refused"
}

programs() {
    local torch=$1
    cp -r "$examples" source
    expect 0 "" cmake -S source -B made -DCMAKE_PREFIX_PATH="$prefix" -DTWINKLE_TORCH="$torch" -DCMAKE_CXX_FLAGS=-O0
    expect 0 "" cmake --build made
    "$twinkle" -q resolve --project "$llama" -o twinkle.map.json >said
    expect 0 "replaced" made/in_memory "$llama/traced.pt" twinkle.map.json
    expect 0 '"replaced"' made/kernelize_c "$llama/traced.pt" twinkle.map.json fast.pt
    expect 2 "usage" made/fetch_kernel
    expect 2 "usage" made/call_kernel
    server "$torch"
}

case $what in
    without-torch) without_torch ;;
    with-torch) with_torch ;;
    python) python_module ;;
    own-model) own_model ;;
    server) server "$4" ;;
    own-server) own_server "$4" ;;
    programs) programs "$4" ;;
    *) fail "unknown: $what" ;;
esac
