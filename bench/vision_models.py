"""Vision models of models.py, with random weights."""

import torch
import transformers as hf
from torch import nn


class Logits(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.model(pixel_values, return_dict=False)[0]


class Conv(nn.Module):
    """As detectors have it; the activation writes in place."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, width: int, adds: bool):
        super().__init__()
        self.cv1, self.cv2, self.adds = Conv(width, width, 3), Conv(width, width, 3), adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.cv2(self.cv1(x)) if self.adds else self.cv2(self.cv1(x))


class Split(nn.Module):
    """Halves of the channels, of which one goes through bottlenecks; all are joined again."""

    def __init__(self, inputs: int, outputs: int, count: int, adds: bool):
        super().__init__()
        self.half = outputs // 2
        self.cv1, self.cv2 = Conv(inputs, outputs), Conv((2 + count) * self.half, outputs)
        self.m = nn.ModuleList([Bottleneck(self.half, adds) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.cv1(x).chunk(2, 1))
        for one in self.m:
            parts.append(one(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Pyramid(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width // 2), Conv(2 * width, width)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Detector(nn.Module):
    """Like YOLOv8s: a backbone, a neck of three scales, a head of boxes and classes."""

    def __init__(self, w: int = 32, classes: int = 80):
        super().__init__()
        self.stem = nn.Sequential(Conv(3, w, 3, 2), Conv(w, 2 * w, 3, 2), Split(2 * w, 2 * w, 1, True))
        self.p3 = nn.Sequential(Conv(2 * w, 4 * w, 3, 2), Split(4 * w, 4 * w, 2, True))
        self.p4 = nn.Sequential(Conv(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 2, True))
        self.p5 = nn.Sequential(Conv(8 * w, 16 * w, 3, 2), Split(16 * w, 16 * w, 1, True), Pyramid(16 * w))
        self.up = nn.Upsample(scale_factor=2.0)
        self.n4, self.n3 = Split(24 * w, 8 * w, 1, False), Split(12 * w, 4 * w, 1, False)
        self.d4, self.m4 = Conv(4 * w, 4 * w, 3, 2), Split(12 * w, 8 * w, 1, False)
        self.d5, self.m5 = Conv(8 * w, 8 * w, 3, 2), Split(24 * w, 16 * w, 1, False)
        widths = (4 * w, 8 * w, 16 * w)
        self.boxes = nn.ModuleList([nn.Sequential(Conv(c, 64, 3), Conv(64, 64, 3), nn.Conv2d(64, 64, 1)) for c in widths])
        self.classes = nn.ModuleList([nn.Sequential(Conv(c, 4 * w, 3), Conv(4 * w, 4 * w, 3), nn.Conv2d(4 * w, classes, 1))
                                      for c in widths])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.n4(torch.cat((self.up(p5), p4), 1))
        n3 = self.n3(torch.cat((self.up(n4), p3), 1))
        m4 = self.m4(torch.cat((self.d4(n3), n4), 1))
        m5 = self.m5(torch.cat((self.d5(m4), p5), 1))
        found = [torch.cat((box(y), kind(y)), 1) for y, box, kind in zip((n3, m4, m5), self.boxes, self.classes)]
        return torch.cat([y.view(y.size(0), y.size(1), -1) for y in found], 2)


KINDS = {
    "resnet50": lambda: Logits(hf.ResNetForImageClassification(hf.ResNetConfig())),
    "mobilenetv2": lambda: Logits(hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(tf_padding=False))),
    "convnext": lambda: Logits(hf.ConvNextForImageClassification(hf.ConvNextConfig())),
    "yolo": Detector,
    "vit": lambda: Logits(hf.ViTForImageClassification(hf.ViTConfig())),
}


@torch.no_grad()
def build(name: str, images: torch.Tensor) -> nn.Module:
    """Statistics of batch normalization are those of these images: else the values of a deep model overflow or vanish."""
    model = KINDS[name]()
    norms = [one for one in model.modules() if isinstance(one, nn.BatchNorm2d)]
    for one in norms:
        one.momentum = None  # the mean of all batches
    if norms:
        model.train()(images)
    return model.eval()
