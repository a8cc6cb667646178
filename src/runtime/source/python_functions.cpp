#include "runtime/source/python_functions.h"

namespace twinkle::runtime {

const std::string& python_functions_source() {
    static const std::string source = R"(
import torch

def relu(input, inplace=False):
    return torch.relu_(input) if inplace else torch.relu(input)
def relu6(input, inplace=False):
    return torch.clamp_(input, 0, 6) if inplace else torch.clamp(input, 0, 6)
def silu(input, inplace=False):
    return torch.ops.aten.silu_(input) if inplace else torch.ops.aten.silu(input)
def mish(input, inplace=False):
    return torch.ops.aten.mish_(input) if inplace else torch.ops.aten.mish(input)
def hardswish(input, inplace=False):
    return torch.ops.aten.hardswish_(input) if inplace else torch.ops.aten.hardswish(input)
def hardsigmoid(input, inplace=False):
    return torch.ops.aten.hardsigmoid_(input) if inplace else torch.ops.aten.hardsigmoid(input)
def leaky_relu(input, negative_slope=0.01, inplace=False):
    if inplace:
        return torch.ops.aten.leaky_relu_(input, negative_slope)
    return torch.ops.aten.leaky_relu(input, negative_slope)
def elu(input, alpha=1.0, inplace=False):
    return torch.ops.aten.elu_(input, alpha) if inplace else torch.ops.aten.elu(input, alpha)
def logsigmoid(input):
    return torch.ops.aten.log_sigmoid(input)
def dropout(input, p=0.5, training=True, inplace=False):
    if inplace:
        return torch.dropout_(input, p, training)
    return torch.dropout(input, p, training)
def embedding(input, weight, padding_idx=None):
    if padding_idx is None:
        return torch.embedding(weight, input)
    return torch.embedding(weight, input, padding_idx if padding_idx >= 0
                           else weight.size(0) + padding_idx)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
               momentum=0.1, eps=1e-5):
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                            eps, True)
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None,
                  use_input_stats=True, momentum=0.1, eps=1e-5):
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                               momentum, eps, True)
def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
def cross_entropy(input, target, weight=None, *, ignore_index=-100, reduction="mean",
                  label_smoothing=0.0):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    kind = 0 if reduction == "none" else 1 if reduction == "mean" else 2
    return torch.ops.aten.cross_entropy_loss(input, target, weight, kind, ignore_index,
                                             label_smoothing)
)";
    return source;
}

}  // namespace twinkle::runtime
