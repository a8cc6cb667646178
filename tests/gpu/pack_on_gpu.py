"""What only a GPU shows of the bundled pack: streams, devices, CUDA graphs, memory, repeatability, tensors of more than
2^31 elements. Values over dtypes, sizes and layouts are those of tests/pack, which script/test-gpu runs there too.

    TWINKLE_PACK_CUDA=build/gpu/lib/twinkle/kernels/twinkle-pack/build/VARIANT python3 -m pytest tests/gpu/pack_on_gpu.py
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
import torch

BUILD = pathlib.Path(os.environ["TWINKLE_PACK_CUDA"])
LIBRARY = next(BUILD.glob("*.so"))
torch.ops.load_library(LIBRARY)
ops = getattr(torch.ops, LIBRARY.stem[1:])
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def random(*shape, dtype=torch.bfloat16, device="cuda"):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def calls(dtype=torch.bfloat16, device="cuda", rows=300, n=1024):
    """Every operator with inputs: name -> (inputs, the rest of the arguments)."""
    def make(*shape):
        return random(*shape, dtype=dtype, device=device)

    result = {}
    for name in ["silu", "gelu", "gelu_tanh", "gelu_new", "gelu_fast", "gelu_quick", "relu"]:
        result[name] = ([make(rows, n)], [])
        result[name + "_backward"] = ([make(rows, n), make(rows, n)], [])
    for name in ["silu_mul", "gelu_mul", "gelu_tanh_mul"]:
        result[name] = ([make(rows, n), make(rows, n)], [])
        result[name + "_backward"] = ([make(rows, n), make(rows, n), make(rows, n)], [])
    for name in ["silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul"]:
        result[name] = ([make(rows, 2 * n)], [])
        result[name + "_backward"] = ([make(rows, n), make(rows, 2 * n)], [])
    result["rms_norm"] = ([make(rows, n), make(n)], [1e-6, 0.0, False])
    result["add_rms_norm"] = ([make(rows, n), make(rows, n), make(n)], [1e-6, 0.0, False])
    result["rms_norm_backward"] = ([make(rows, n), make(rows, n), make(n)], [1e-6, 0.0, False])
    result["layer_norm"] = ([make(rows, n), make(n), make(n)], [1e-5])
    result["add_layer_norm"] = ([make(rows, n), make(rows, n), make(n), make(n)], [1e-5])
    result["layer_norm_backward"] = ([make(rows, n), make(rows, n), make(n)], [1e-5])
    result["apply_rotary"] = ([make(rows, 4, 64), make(rows, 1, 64), make(rows, 1, 64)], [False, False])
    return result


NAMES = sorted(calls(device="cpu", rows=1, n=8))


def run(name, inputs, numbers):
    result = getattr(ops, name)(*inputs, *numbers)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_close(results, expected):
    """To about a unit of the dtype: exactly how close is tested elsewhere."""
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
        tolerance = {torch.float32: 2e-6, torch.float64: 1e-14}.get(ours.dtype, 2e-2)
        scale = theirs.double().abs().max().item() if theirs.numel() else 1
        error = (ours.double().cpu() - theirs.double().cpu()).abs().max().item() if ours.numel() else 0
        assert error <= tolerance * max(scale, 1e-3), error / scale


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES + [torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 8), (7, 130), (300, 1024), (3, 11008), (3, 50000)], ids=str)
def test_the_gpu_computes_what_the_cpu_does(name, dtype, shape):
    torch.manual_seed(0)
    inputs, numbers = calls(dtype, "cpu", *shape)[name]
    assert_close([x.cpu() for x in run(name, [x.cuda() for x in inputs], numbers)], run(name, inputs, numbers))


@pytest.mark.parametrize("name", NAMES)
def test_without_alignment(name):
    inputs, numbers = calls()[name]
    shifted = []
    for x in inputs:
        memory = torch.empty(x.numel() + 1, dtype=x.dtype, device="cuda")
        shifted.append(memory[1:].view(x.shape).copy_(x))
    assert_close(run(name, shifted, numbers), run(name, inputs, numbers))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_run_gives_the_same_bits(name, dtype):
    inputs, numbers = calls(dtype, rows=5000)[name]
    first = run(name, inputs, numbers)
    for _ in range(3):
        for a, b in zip(run(name, inputs, numbers), first, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_captured_in_a_graph(name):
    inputs, numbers = calls()[name]
    run(name, inputs, numbers)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run(name, inputs, numbers)
    for x in inputs:
        x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    for a, b in zip(results, run(name, inputs, numbers), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_on_the_current_stream(name):
    """The inputs are written by a slow neighbour on the same stream: on any other one they would be old."""
    inputs, numbers = calls()[name]
    expected = run(name, [torch.ones_like(x) for x in inputs], numbers)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        for x in inputs:
            x.fill_(1)
        results = run(name, inputs, numbers)
    stream.synchronize()
    for a, b in zip(results, expected, strict=True):
        assert torch.equal(a, b)


def at_the_end_of_much(inputs):
    """A tensor that takes a while to compute, and views of its end as the inputs are."""
    much = torch.cat([torch.full((1 << 28,), 2.0, dtype=inputs[0].dtype, device="cuda"),
                      *(x.abs().flatten() for x in inputs)])

    def views(computed):
        at, found = 1 << 28, []
        for x in inputs:
            found.append(computed[at:at + x.numel()].view(x.shape))
            at += x.numel()
        return found

    return much, views


def machine_code():
    """(architecture, name, code) of every kernel, in text."""
    folder = pathlib.Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve().parent
    text = subprocess.run([folder / "cuobjdump", "-sass", LIBRARY], check=True, capture_output=True, text=True).stdout
    for part in text.split("Fatbin elf code:")[1:]:
        arch = int(re.search(r"arch = sm_(\d+)", part)[1])
        for function in part.split("Function : ")[1:]:
            name, _, code = function.partition("\n")
            yield arch, name, code


def test_nothing_is_read_before_the_kernel_ahead_has_ended():
    """Each kernel that is launched early waits, and though compilers may move loads none stands before that in the
    machine code."""
    early = r"\d(norm_rows|dense|strided|rotate_vectors|linear_tiles|bits_tiles|bits_supplied|bits_strips|bits_products|fp8_products|round_rows)I"
    seen = 0
    for arch, name, code in machine_code():
        if arch < 90 or not re.search(early, name):
            assert "ACQBULK" not in code, name
            continue
        seen += 1
        before, wait, _ = code.partition("ACQBULK")
        assert wait and not re.search(r"\b(LDG|STG|LD|ST|RED|ATOM)\.", before), name
    assert seen > 100 or torch.cuda.get_device_capability() < (9, 0)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("name", NAMES)
def test_waits_for_the_kernel_before_it(name, rows, captured):
    """Kernels of the pack may begin before the one ahead of them in the stream has ended. This large one lets none begin
    before its last block has ended, so that a wait that is missing shows by luck only: the tests beside it look for it."""
    inputs, numbers = calls(rows=rows, n=8192)[name]
    much, views = at_the_end_of_much(inputs)
    expected = run(name, views(much.clone()), numbers)
    torch.cuda.synchronize()

    def both():
        computed = ops.relu(much)
        return computed, run(name, views(computed), numbers)

    both()
    # What relu's result will lie in: read too early it is NaN.
    old = torch.full_like(much, torch.nan)
    torch.cuda.synchronize()
    del old
    if captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            computed, results = both()
        for _ in range(3):
            for x in [computed, *results]:
                x.fill_(torch.nan)
            graph.replay()
            torch.cuda.synchronize()
            for a, b in zip(results, expected, strict=True):
                assert torch.equal(a, b)
        return
    for a, b in zip(both()[1], expected, strict=True):
        assert torch.equal(a, b)


def test_waits_for_the_kernel_before_the_last():
    """A small kernel lets the next begin: that one reads what the kernel before the small one writes."""
    much, weight, little = random(1 << 28, dtype=torch.float32), random(4096), random(1, 4096)
    end = much[-4096:]
    expected = ops.silu(ops.relu(end.clone()))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        computed = ops.relu(much)
        ops.rms_norm(little, weight, 1e-6, 0.0, False)
        result = ops.silu(computed[-4096:])
    for _ in range(5):
        computed.fill_(torch.nan)
        graph.replay()
        assert torch.equal(result, expected)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("size", [(1, 4096), (1, 11008), (3, 8192), (16, 4096), (60, 4096), (4096, 4096)])
def test_a_chain_whose_memory_is_used_again(size, captured):
    """Each result takes the place of the input of the kernel before the last. In a graph the kernels follow each other
    closely enough for small ones to let the next begin: it would read or overwrite too early, did it not wait."""
    x, weight, residual = random(*size), random(size[1]), random(*size)
    cos, sin = random(1, 128), random(1, 128)
    steps = [lambda y: ops.rms_norm(y, weight, 1e-6, 0.0, False), ops.silu, ops.gelu,
             lambda y: ops.apply_rotary(y.view(-1, 128), cos, sin, False, False).view(size),
             lambda y: ops.layer_norm(y, weight, weight, 1e-5), ops.relu,
             lambda y: ops.add_rms_norm(y, residual, weight, 1e-6, 0.0, False)[0], lambda y: ops.silu_mul(y, y)]

    def chain(wait):
        result = x
        for i in range(48):
            result = steps[i % 8](result)
            wait()
        return result

    expected = chain(torch.cuda.synchronize)
    assert expected.isfinite().all() and expected.count_nonzero() > expected.numel() / 4
    if not captured:
        for _ in range(10):
            assert torch.equal(chain(lambda: None), expected)
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = chain(lambda: None)
    start = x.clone()
    for i in range(20):
        x.copy_(start if i % 2 else start.flip(0, 1))
        graph.replay()
        assert torch.equal(result, expected) == (i % 2 == 1)


@pytest.mark.parametrize("name", NAMES)
def test_waits_for_nothing(name):
    inputs, numbers = calls()[name]
    torch.cuda.set_sync_debug_mode("error")
    try:
        run(name, inputs, numbers)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", NAMES)
def test_allocates_its_results_alone(name):
    inputs, numbers = calls(rows=4096)[name]
    # Strided inputs too are read where they lie.
    inputs = [torch.stack([x, x], -1)[..., 0] for x in inputs]
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    results = run(name, inputs, numbers)
    used = torch.cuda.max_memory_allocated() - before
    expected = sum((x.nbytes + 511) // 512 * 512 for x in results)
    if name.endswith("norm_backward"):  # and the sums of parts of the rows
        expected += 4096 * 12 + 256 * 2 * 4 * 1024 + 1024
    assert used <= expected


@pytest.mark.parametrize("name", NAMES)
def test_on_the_device_of_its_inputs(name):
    """With the last GPU's tensors while the first is the current one; with one GPU the two are the same."""
    device = torch.device("cuda", torch.cuda.device_count() - 1)
    inputs, numbers = calls(device="cpu")[name]
    with torch.cuda.device(0):
        results = run(name, [x.to(device) for x in inputs], numbers)
        assert torch.cuda.current_device() == 0
    assert all(x.device == device for x in results)
    assert_close([x.cpu() for x in results], run(name, inputs, numbers))


def test_devices_are_not_mixed():
    with pytest.raises(RuntimeError):
        ops.silu_mul(random(3, 8), random(3, 8, device="cpu"))


LARGE = 2**31 + 2**13


def same_at_both_ends(large, expect, rows):
    for part in [slice(0, 2), slice(rows // 2, rows // 2 + 2), slice(rows - 2, rows)]:
        assert_close([x[part] for x in large], expect(part))


def test_more_than_2_31_elements():
    n = 8192
    x = torch.randn(1 << 20, device="cuda").to(torch.bfloat16).repeat(LARGE // (1 << 20) + 1)[:LARGE].view(-1, n)
    rows, weight = x.shape[0], random(n)
    assert x.numel() > 2**31
    same_at_both_ends(run("silu", [x], []), lambda part: run("silu", [x[part]], []), rows)
    same_at_both_ends(run("silu_and_mul", [x], []), lambda part: run("silu_and_mul", [x[part]], []), rows)
    same_at_both_ends(run("rms_norm", [x, weight], []), lambda part: run("rms_norm", [x[part], weight], []), rows)
    same_at_both_ends(run("layer_norm", [x, weight, weight], []),
                      lambda part: run("layer_norm", [x[part], weight, weight], []), rows)
    turned = x.view(-1, 64, 128)
    cos = random(128)
    same_at_both_ends(run("apply_rotary", [turned, cos, cos], []),
                      lambda part: run("apply_rotary", [turned[part], cos, cos], []), turned.shape[0])
    # Every second element, in rows that no vector divides.
    odd = x.view(-1)[: LARGE // 2 * 2].view(-1, 2)[:, 0]
    result = ops.silu(odd)
    assert torch.equal(result[-1000:], ops.silu(odd[-1000:].contiguous()))


def test_a_gradient_of_more_than_2_31_elements():
    n = 8192
    x = torch.randn(1 << 20, device="cuda").to(torch.bfloat16).repeat(LARGE // (1 << 20) + 1)[:LARGE].view(-1, n)
    grad, weight = torch.ones_like(x), random(n)
    results = run("rms_norm_backward", [grad, x, weight], [])
    expect = run("rms_norm_backward", [grad[-2:], x[-2:], weight], [])
    assert_close([results[0][-2:]], [expect[0]])
    scale = torch.rsqrt(x[: 1 << 15].float().square().mean(-1, keepdim=True) + 1e-6)
    part = run("rms_norm_backward", [grad[: 1 << 15], x[: 1 << 15], weight], [])[1]
    assert_close([part], [(x[: 1 << 15].float() * scale).sum(0).to(torch.bfloat16)])
