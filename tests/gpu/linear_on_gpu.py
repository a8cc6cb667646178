"""What only a GPU shows of the bundled pack's linear layers: kernels that begin before the one ahead has ended, graphs,
streams, and every border between kernels.

    TWINKLE_PACK_CUDA=build/gpu/lib/twinkle/kernels/twinkle-pack/build/VARIANT python3 -m pytest tests/gpu/linear_on_gpu.py
"""

import os
import pathlib

import pytest
import torch
import torch.nn.functional as F

LIBRARY = next(pathlib.Path(os.environ["TWINKLE_PACK_CUDA"]).glob("*.so"))
torch.ops.load_library(LIBRARY)
ops = getattr(torch.ops, LIBRARY.stem[1:])
LIMITS = {torch.float32: 1e-6, torch.bfloat16: 6e-3, torch.float16: 1e-3, torch.float64: 1e-14}


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def assert_right(result, x, weight, bias=None):
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    assert result.shape == exact.shape and result.dtype == x.dtype
    assert (result.double() - exact).norm() <= LIMITS[x.dtype] * exact.norm()


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("rows", [(), (1,), (2, 3), (8,), (1, 16), (17,), (32,), (3, 20), (64,), (65,), (300,)], ids=str)
def test_sizes(dtype, rows):
    torch.manual_seed(0)
    for outputs, inner in [(64, 64), (100, 136), (1030, 520), (3000, 1032), (9000, 264), (7, 9), (70000, 64), (1, 4096)]:
        x, weight = random(*rows, inner, dtype=dtype), random(outputs, inner, dtype=dtype)
        for bias in [random(outputs, dtype=dtype), None]:
            assert_right(ops.linear(x, weight, bias), x, weight, bias)


def test_layouts():
    x, weight, bias = random(4, 512), random(512, 512), random(512)
    odd = x.view(-1)[1:1 + 3 * 512].view(3, 512)
    for a, b in [(x[:, ::2], weight[:, :256]), (x, weight.t()), (odd, weight), (x[:0], weight)]:
        assert_right(ops.linear(a, b, bias), a, b, bias)


def test_several_products():
    x, weight, bias = random(4, 512), random(512, 512), random(512)
    pairs = [(weight, bias), (weight.t(), None), (weight[:100], bias[:100])]
    for result, pair in zip(ops.linear3(x, *(tensor for pair in pairs for tensor in pair)), pairs, strict=True):
        assert_right(result, x, *pair)
    gate = ops.linear_silu_mul(x, weight, bias, weight.t(), None)
    exact = F.silu(F.linear(x.double(), weight.double(), bias.double())) * F.linear(x.double(), weight.t().double())
    assert (gate.double() - exact).norm() <= 1e-2 * exact.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 7, 64, 300])
def test_weights_that_were_laid_out_for_a_cpu(rows, dtype):
    torch.manual_seed(0)
    x, weight, other, bias = (random(*shape, dtype=dtype) for shape in [(rows, 96), (128, 96), (128, 96), (128,)])
    assert ops.linear_prepack(weight) is None
    for group in (1, 2):
        panels = weight.reshape(4, 32, 96 // group, group).transpose(1, 2)
        for laid_out in (panels, panels.contiguous()):
            assert_right(ops.linear(x, laid_out, bias), x, weight, bias)
            for result in ops.linear3(x, laid_out, bias, weight, bias, laid_out, bias):
                assert_right(result, x, weight, bias)
            gate = ops.linear_silu_mul(x, laid_out, bias, other, None)
            exact = F.silu(F.linear(x.double(), weight.double(), bias.double())) * F.linear(x.double(), other.double())
            assert (gate.double() - exact).norm() <= 1e-2 * exact.norm()


@pytest.mark.parametrize("rows", [1, 8, 16, 32])
def test_layers_that_follow_each_other_in_a_graph(rows):
    weights = [random(2048, 2048) * 0.02 for _ in range(40)]
    x = random(rows, 2048)

    def chain(result):
        for weight in weights:
            result = ops.linear(result, weight, None)
        return result

    plain = chain(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = chain(x)
    for _ in range(20):
        captured.fill_(7)
        graph.replay()
        assert torch.equal(captured, plain)


def test_a_weight_that_the_kernel_ahead_writes():
    for _ in range(50):
        x, weight = random(2, 1024), random(4096, 1024)
        twice = weight * 2
        expect = ops.linear(x, twice, None)
        torch.cuda.synchronize()
        weight.mul_(2)
        assert torch.equal(ops.linear(x, weight, None), expect)


def test_on_another_stream():
    x, weight = random(2, 1024), random(4096, 1024)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        result = ops.linear(x, weight, None)
    stream.synchronize()
    assert torch.equal(result, ops.linear(x, weight, None))
