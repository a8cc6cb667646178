#pragma once
// Finds the libtwinkle that fits the LibTorch of this process, and lets it load a model's kernels.

// What torch::jit::load was given. The values are part of libtwinkle's interface
// (runtime/api/preload_entry.cpp).
enum twinkle_source { TWINKLE_PATH = 0, TWINKLE_STREAM = 1, TWINKLE_READER = 2 };

// `model`: a path (const char*), a std::istream*, or a std::shared_ptr<ReadAdapterInterface>*.
// `load`: an address inside the LibTorch of this process. What fails is said on stderr; LibTorch
// then refuses the model itself.
void twinkle_prepare(enum twinkle_source source, void* model, void* load);
