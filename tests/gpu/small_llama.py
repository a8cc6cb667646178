"""A small model like Llama as transformers makes it, traced on the CPU in bfloat16: what tests on a GPU kernelize."""

import os
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers as hf  # noqa: E402
from torch import nn  # noqa: E402

LAYERS = 2
VOCABULARY = 90


class Logits(nn.Module):
    """Tensors in, tensors out: the dictionaries of transformers cannot be traced."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids, return_dict=False, use_cache=False)[0]


def model() -> nn.Module:
    hf.logging.set_verbosity_error()
    torch.manual_seed(1)
    made = hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=2048, num_hidden_layers=LAYERS, num_attention_heads=16,
        tie_word_embeddings=False))
    # A name without a function that makes masks: those of transformers read from the device, which no graph captures.
    hf.AttentionInterface.register("causal", hf.AttentionInterface._global_mapping["sdpa"])
    made.set_attn_implementation("causal")
    return Logits(made).to(torch.bfloat16).eval()


def tokens(count: int) -> torch.Tensor:
    return (torch.arange(count) * 31 % (VOCABULARY - 1) + 1).unsqueeze(0)


@torch.no_grad()
def save(path) -> nn.Module:
    made = model()
    torch.jit.trace(made, tokens(8), check_trace=False).save(path)
    return made
