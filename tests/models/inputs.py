"""Files for --inputs. Token ids of [3, 24] below 128 unless the name says otherwise."""

import os
import pathlib
import pickle

import torch
from tiny_llama.traceable import random_tokens

TOKENS = random_tokens(3, 24, 128, seed=3)
HIDDEN = torch.randn(3, 24, 64, generator=torch.Generator().manual_seed(4))


class RunsCode:
    """Unpickled by anything but a restricted unpickler, this makes a folder beside the file."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def make(folder: pathlib.Path) -> None:
    torch.save(TOKENS, folder / "tensor.pt")
    torch.save((TOKENS,), folder / "tuple.pt")
    torch.save([TOKENS], folder / "list.pt")
    torch.save({"input_ids": TOKENS}, folder / "dict.pt")
    torch.save((random_tokens(2, 9, 128, seed=5),), folder / "other_shape.pt")
    torch.save((HIDDEN,), folder / "hidden.pt")
    torch.save((HIDDEN.bfloat16(),), folder / "hidden_bfloat16.pt")
    torch.save((TOKENS, TOKENS), folder / "too_many.pt")
    torch.save((TOKENS.float(),), folder / "wrong_dtype.pt")
    torch.save({"no_such_name": TOKENS}, folder / "wrong_name.pt")
    torch.save((TOKENS,), folder / "legacy.pt", _use_new_zipfile_serialization=False)

    torch.save((TOKENS, RunsCode(folder / "this-file-ran-code")), folder / "hostile.pt")
    (folder / "hostile.pkl").write_bytes(pickle.dumps(RunsCode(folder / "this-file-ran-code")))
    whole = (folder / "tuple.pt").read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    (folder / "text.pt").write_text("int64[3,24]:0..128\n")
    (folder / "empty.pt").write_bytes(b"")
