"""What only a GPU shows of linear layers with packed weights: every border between kernels, graphs, kernels that begin
before the one ahead has ended, and products of many rows, against sums in double of the same rounded weights.

    TWINKLE_PACK_CUDA=build/gpu/lib/twinkle/kernels/twinkle-pack/build/VARIANT python3 -m pytest tests/gpu/bits_on_gpu.py
"""

import importlib.util
import os
import pathlib
import sys

import pytest
import torch

PACKAGE = pathlib.Path(os.environ["TWINKLE_PACK_CUDA"])
specification = importlib.util.spec_from_file_location("twinkle_pack_tested", PACKAGE / "__init__.py",
                                                       submodule_search_locations=[str(PACKAGE)])
sys.modules["twinkle_pack_tested"] = package = importlib.util.module_from_spec(specification)
specification.loader.exec_module(package)
low_bits = importlib.import_module("twinkle_pack_tested.low_bits")
ops = low_bits.ops
KINDS = {"int8": low_bits.quantize_int8, "int4": low_bits.quantize_int4, "fp8": low_bits.quantize_fp8}
# float32 is multiplied as two bfloat16, and by TF32 or not where LibTorch multiplies.
LIMITS = {torch.float32: 1e-4, torch.bfloat16: 6e-3, torch.float16: 1e-3}
FP8_LIMIT = 5e-4  # of float32: tensor cores add up to 128 products of fp8 with 14 bits
FEW_ROWS = 32  # more are rounded to fp8, too, where the weight is


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


class Weight:
    def __init__(self, kind, outputs, depth):
        self.kind = kind
        self.values, self.scales = KINDS[kind](torch.randn(outputs, depth, device="cuda"))
        one = torch.empty(1, depth, device="cuda")
        self.exact = getattr(ops, f"unpack_{kind}")(one, self.values, self.scales)

    def __call__(self, x, bias=None):
        return getattr(low_bits, f"linear_{self.kind}")(x, self.values, self.scales, bias)

    def operator(self, x, bias=None):
        return getattr(ops, f"linear_{self.kind}")(x, self.values, self.scales, bias)


def assert_right(result, x, weight, bias=None):
    taken, depth = x.double(), x.size(-1)
    limit, of_weight = LIMITS[x.dtype], weight.exact.double()
    if weight.kind == "fp8" and x.numel() > FEW_ROWS * depth and weight.values.size(0) % 16 == 0:
        values, scales = ops.round_to_fp8(x.reshape(-1, depth).contiguous())
        taken = (values.double() * scales.double()).view(x.shape)
        limit, of_weight = max(limit, FP8_LIMIT), weight.values.double() * weight.scales.double()
    exact = torch.nn.functional.linear(taken, of_weight, None if bias is None else bias.double())
    assert result.shape == exact.shape and result.dtype == x.dtype
    error = (result.double() - exact).norm() / exact.norm().clamp(min=1e-30)
    assert error <= limit


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_that_were_packed(kind):
    torch.manual_seed(1)
    for outputs, depth in [(16, 64), (7, 128), (100, 320), (4096, 1024)]:
        weight = torch.randn(outputs, depth)
        values, scales = KINDS[kind](weight)
        for dtype in LIMITS:
            x = torch.empty(1, depth, dtype=dtype)
            on_cpu = getattr(ops, f"unpack_{kind}")(x, values, scales)
            on_gpu = getattr(ops, f"unpack_{kind}")(x.cuda(), values.cuda(), scales.cuda())
            assert torch.equal(on_gpu.cpu(), on_cpu)
            assert (on_cpu.float() - weight).norm() <= {"int8": 0.01, "int4": 0.11, "fp8": 0.03}[kind] * weight.norm()
        if kind == "fp8":
            assert torch.equal(on_cpu.float(), (values.float() * scales).half().float())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("rows", [(), (1,), (2, 3), (8,), (9,), (1, 16), (17,), (32,), (33,), (3, 20), (64,), (65,), (100,), (128,),
                                  (129,), (192,), (193,), (300,), (500,)], ids=str)
def test_sizes(kind, dtype, rows):
    torch.manual_seed(0)
    for outputs, depth in [(64, 64), (112, 128), (1040, 576), (3008, 1024), (9008, 256), (1040, 3584), (7, 64), (70000, 64), (16, 4096), (32, 33088)]:
        x, weight = random(*rows, depth, dtype=dtype), Weight(kind, outputs, depth)
        for bias in [random(outputs, dtype=dtype), None]:
            assert_right(weight.operator(x, bias), x, weight, bias)


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_many_rows_in_fp8(dtype):
    torch.manual_seed(2)
    # Of both kernels and LibTorch, and at their borders.
    for rows, outputs, depth in [(33, 64, 64), (64, 18944, 512), (65, 64, 64), (100, 9008, 256), (130, 112, 320), (200, 3584, 18944),
                                 (512, 512, 3584), (600, 512, 576), (3000, 1024, 2048), (300, 2048, 16384)]:
        x, weight, bias = random(rows, depth, dtype=dtype), Weight("fp8", outputs, depth), random(outputs, dtype=dtype)
        for one in [bias, None]:
            assert_right(weight(x, one), x, weight, one)
        odd = torch.empty(x.numel() + 1, device="cuda", dtype=dtype)[1:].view(x.shape).copy_(x)
        for layout in [odd, x.t().contiguous().t()]:
            assert_right(weight(layout, bias), x, weight, bias)
        x[3] = 0
        assert torch.equal(weight(x, None)[3], torch.zeros_like(bias))
        x[5, 7] = float("nan")
        result = weight(x.unsqueeze(0), bias)[0]
        assert result[5].isnan().all() and not result[:5].isnan().any() and not result[6:].isnan().any()


def test_rows_rounded_to_fp8():
    torch.manual_seed(3)
    for rows, depth in [(1, 64), (5, 320), (17, 4096), (3, 14336)]:
        for dtype in LIMITS:
            x = random(rows, depth, dtype=dtype)
            values, scales = ops.round_to_fp8(x)
            on_cpu = ops.round_to_fp8(x.cpu())
            assert torch.equal(scales.cpu(), on_cpu[1]) and torch.equal(values.cpu().view(torch.uint8), on_cpu[0].view(torch.uint8))
            largest = x.float().abs().amax(-1, keepdim=True)
            assert torch.allclose(scales, largest / 448, rtol=1e-6)
            inverse = torch.full_like(largest, 448) / largest
            assert torch.equal(values.view(torch.uint8), (x.float() * inverse).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 16, 32, 64, 128, 192, 1000])
def test_layers_that_follow_each_other_in_a_graph(kind, rows):
    weights = [Weight(kind, 2048, 2048) for _ in range(20)]
    x = random(rows, 2048)

    def chain(result):
        for weight in weights:
            result = weight(result) * 0.02
        return result

    plain = chain(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = chain(x)
    for _ in range(10):
        captured.fill_(7)
        graph.replay()
        assert torch.equal(captured, plain)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_and_what_is_not_finite(kind):
    weight = Weight(kind, 512, 256)
    x = random(6, 512)
    odd = x.view(-1)[1:1 + 6 * 256].view(6, 256)
    for one in [x[:, ::2], odd, x[:, :256].t().contiguous().t(), x[:0, :256]]:
        assert_right(weight.operator(one), one, weight)
    x = x[:, :256].contiguous()
    x[2, 5] = float("inf")
    result = weight.operator(x)
    assert not result[2].isfinite().any() and result[:2].isfinite().all() and result[3:].isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [40, 128, 190])
def test_rows_that_are_not_finite_stay_alone(kind, rows):
    weight, x = Weight(kind, 1040, 512), random(rows, 512)
    x[2, 5], x[rows - 1, 300] = float("inf"), float("nan")
    result = weight.operator(x)
    assert not result[2].isfinite().any() and not result[-1].isfinite().any()
    assert result[:2].isfinite().all() and result[3:-1].isfinite().all()
    assert torch.equal(weight.operator(x)[3:-1], result[3:-1])
