"""Layers for the classes of transformers and torch.nn; kernels/presets says for which."""

from .activation_layers import (
    FastGELU, Gelu, GeluAndMul, GeluTanh, GeluTanhAndMul, MulAndSilu, NewGELU, QuickGELU, ReLU, Silu, SiluAndMul,
)
from .linear_layers import Linear
from .low_bits_layers import LinearFp8, LinearInt4, LinearInt8
from .mlp_layers import (
    GeGLUErfMLP, GeGLUMLP, GraniteMoeMLP, GteMLP, Lfm2MLP, ModernBertMLP, MoonshineMLP, Phi3MLP,
    SwiGLUMLP, T5DenseGatedActDense, T5GemmaMLP,
)
from .norm_layers import (
    AddLayerNorm, AddRMSNorm, CohereLayerNorm, DebertaLayerNorm, Gemma4RMSNorm, GemmaRMSNorm, LayerNorm,
    LayerNorm1P, Llama4RMSNorm, LlamaRMSNorm, OlmoLayerNorm, OlmoRMSNorm, RMSNorm, T5LayerNorm, TorchRMSNorm,
    WeightlessRMSNorm,
)
from .rotary_layers import apply_rotary_transformers

__all__ = [
    "Silu", "Gelu", "GeluTanh", "NewGELU", "FastGELU", "QuickGELU", "ReLU", "SiluAndMul", "MulAndSilu",
    "GeluAndMul", "GeluTanhAndMul", "RMSNorm", "LlamaRMSNorm", "Llama4RMSNorm", "OlmoRMSNorm", "GemmaRMSNorm",
    "Gemma4RMSNorm", "WeightlessRMSNorm", "TorchRMSNorm", "T5LayerNorm", "LayerNorm", "LayerNorm1P",
    "CohereLayerNorm", "OlmoLayerNorm", "DebertaLayerNorm", "AddRMSNorm", "AddLayerNorm", "SwiGLUMLP", "GeGLUMLP",
    "GeGLUErfMLP", "Phi3MLP", "GraniteMoeMLP", "MoonshineMLP", "Lfm2MLP", "ModernBertMLP",
    "GteMLP", "T5GemmaMLP", "T5DenseGatedActDense", "Linear",
    "LinearInt8", "LinearInt4", "LinearFp8", "apply_rotary_transformers",
]
