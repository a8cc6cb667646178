from torch import nn


class Layer(nn.Module):
    """What every layer of the pack is: it trains, and it can be compiled."""

    can_torch_compile: bool = True
    has_backward: bool = True
