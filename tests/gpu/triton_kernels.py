"""Functions written in Triton, for script/compile_kernel.py: an RMSNorm of our own and, where TWINKLE_COMMUNITY names an
unpacked copy of them, the SwiGLU of kernels-community's liger-kernels."""

import os
import sys

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_ptr + row * width + columns, mask=inside, other=0.0)
    exact = x.to(tl.float32)
    scaled = exact * tl.rsqrt(tl.sum(exact * exact, 0) / width + eps)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0)
    tl.store(y_ptr + row * width + columns, weight * scaled.to(x.dtype), mask=inside)


@triton_op("twinkle_tests::rms_norm", mutates_args=())
def rms_norm_op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    y = torch.empty_like(x)
    width = x.shape[-1]
    block = triton.next_power_of_2(width)
    wrap_triton(rms_norm_kernel)[(x.numel() // width,)](x, weight, y, width, eps, BLOCK=block,
                                                        num_warps=min(max(block // 256, 1), 16))
    return y


def rms_norm(hidden_states, weight, variance_epsilon):
    return rms_norm_op(hidden_states, weight, variance_epsilon)


if os.environ.get("TWINKLE_COMMUNITY"):
    sys.path.insert(0, os.environ["TWINKLE_COMMUNITY"])
    from liger_kernels.swiglu import _swiglu_forward_kernel
    from liger_kernels.utils import calculate_settings

    @triton_op("twinkle_tests::swiglu", mutates_args=())
    def swiglu_op(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """The forward kernel of liger-kernels, called as its own swiglu_forward() calls it."""
        width = gate.shape[-1]
        result = torch.empty_like(gate)
        block, warps = calculate_settings(width)
        wrap_triton(_swiglu_forward_kernel)[(gate.numel() // width,)](gate, up, result, width, 1.0, n_cols=width,
                                                                      BLOCK_SIZE=block, num_warps=warps)
        return result


def swiglu(gate, up):
    return swiglu_op(gate, up)
