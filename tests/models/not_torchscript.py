"""Files that somebody may hand to `kernelize` by mistake or on purpose: each is an exit 2 with a name."""

import pathlib
import pickle
import zipfile

import torch
from inputs import RunsCode
from safetensors.torch import save_file
from torchscript import NormAndMLP, strong


def make(folder: pathlib.Path, models: pathlib.Path) -> None:
    model = strong(NormAndMLP(1e-3))
    torch.save(model.state_dict(), folder / "state_dict.pt")
    torch.save({"model": model.state_dict(), "epoch": 3}, folder / "checkpoint.pt")
    torch.save(model, folder / "whole_module.pt")
    torch.save(model.state_dict(), folder / "legacy_state_dict.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(folder / "compiled.pt2", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("compiled/archive_format", "pt2")
        archive.writestr("compiled/.data/version", "6\n")
        archive.writestr("compiled/byteorder", "little")
        archive.writestr("compiled/data/aotinductor/model/model.wrapper.so", b"\x7fELF")
    save_file(model.state_dict(), folder / "weights.safetensors")
    (folder / "plain.pkl").write_bytes(pickle.dumps({"weights": [1.0, 2.0]}))
    (folder / "hostile.pkl").write_bytes(pickle.dumps(RunsCode(folder / "this-file-ran-code")))
    (folder / "model.onnx").write_bytes(b"\x08\x08\x12\x07pytorch\x1a\x052.13.")
    (folder / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(16))
    (folder / "empty.pt").write_bytes(b"")
    (folder / "zeros.pt").write_bytes(bytes(4096))
    (folder / "text.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with zipfile.ZipFile(folder / "other_zip.pt", "w") as archive:
        archive.writestr("readme.txt", "not a model")

    whole = (models / "tiny_llama.pt").read_bytes()
    for name, length in {"truncated_header": 40, "truncated": len(whole) // 2, "truncated_end": len(whole) - 20}.items():
        (folder / f"{name}.pt").write_bytes(whole[:length])
    rewrite(models / "tiny_llama.pt", folder / "broken_code.pt",
            lambda name, data: data.replace(b"def forward", b"def forward(") if name.endswith(".py") else data)
    rewrite(models / "tiny_llama.pt", folder / "broken_data.pt",
            lambda name, data: data[: len(data) // 2] if name.endswith("data.pkl") else data)
    rewrite(models / "tiny_llama.pt", folder / "missing_weight.pt",
            lambda name, data: None if name.endswith("/data/0") else data)
    # A record outside of the folder of the archive: refused, and in no case unpacked.
    rewrite(models / "tiny_llama.pt", models / "stray_record.pt",
            lambda name, data: data, {"../../escaped.py": b"print(1)"})


def rewrite(source: pathlib.Path, target: pathlib.Path, change, added: dict[str, bytes] | None = None) -> None:
    """Copies a saved model and changes or drops records (padding as PyTorch's writer does is not kept)."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
        for name, data in (added or {}).items():
            new.writestr(name, data)
