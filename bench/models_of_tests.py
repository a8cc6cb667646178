"""Importing this makes those modules of tests/models importable that need examples/tiny-llama and no network."""

import os
import pathlib
import sys
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
TWINKLE = os.environ.get("TWINKLE_BIN", str(ROOT / "build/release/bin/twinkle"))

sys.path.insert(0, str(ROOT / "tests/models"))
os.environ["HF_HUB_OFFLINE"] = "1"
tiny_llama = types.ModuleType("tiny_llama")  # which the models of tests import
tiny_llama.__path__ = [str(ROOT / "examples/tiny-llama")]
sys.modules["tiny_llama"] = tiny_llama
warnings.filterwarnings("ignore")
