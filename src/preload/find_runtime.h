#pragma once
// Finds the libtwinkle for the LibTorch of this process, and makes it load a model's kernels.

// The kind of a loader's argument. The values are part of libtwinkle's ABI
// (runtime/api/preload_entry.cpp).
enum twinkle_source {
    TWINKLE_PATH = 0,
    TWINKLE_STREAM = 1,
    TWINKLE_READER = 2,
    TWINKLE_PACKAGE = 3
};

// `model`: a path (const char*; also that of a package), a std::istream*, or a
// std::shared_ptr<ReadAdapterInterface>*. `load`: an address inside the LibTorch of this process.
// Failures are reported on stderr; LibTorch then refuses the model itself.
void twinkle_prepare(enum twinkle_source source, void* model, void* load);
