"""Masks of exported attention: one that leaves nothing out is not there; any other is."""

import warnings

import pytest
from kernels_for_tests import needs_runtime

pytestmark = needs_runtime
torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore")  # torch.jit is deprecated: known
F = torch.nn.functional


class Attention(torch.nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, self.mask(x))

    def positions(self, x):
        return torch.arange(x.size(2))[None, None, None, :]


class Full(Attention):
    def mask(self, x):
        return (self.positions(x) + 0 >= 0).expand(x.size(0), -1, x.size(2), x.size(2))


class FromTwo(Attention):
    def mask(self, x):
        return self.positions(x) >= 2


class Overflowing(Attention):
    def mask(self, x):
        return torch.arange(x.size(2), dtype=torch.int8)[None, None, None, :] + 126 >= 0


class Changed(Attention):
    def mask(self, x):
        mask = self.positions(x) >= 0
        mask[..., 1].fill_(False)
        return mask


class NegativeSteps(Attention):
    def mask(self, x):
        return torch.arange(2, 2 - x.size(2), -1)[None, None, None, :] >= 0


@pytest.mark.parametrize("model,kept", [(Full, False), (FromTwo, True), (Overflowing, True), (Changed, True),
                                        (NegativeSteps, True)])
def test_masks(twinkle, model, kept):
    x = torch.randn(2, 3, 5, 8)
    tokens = torch.export.Dim("tokens", min=4, max=64)
    program = torch.export.export(model(), (x,), dynamic_shapes=({2: tokens},))
    torch.export.save(program, twinkle.folder / "model.pt2")
    assert twinkle("convert", "model.pt2", "-o", "model.pt").code == 0
    converted = torch.jit.load(twinkle.folder / "model.pt")
    assert ("arange" in converted.code) == kept, converted.code
    for x in (x, torch.randn(2, 3, 7, 8)):
        assert torch.equal(converted(x), program.module()(x))
