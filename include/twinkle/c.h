/* libtwinkle for C, and for languages that call C: Rust, Go, Java, servers that load models
 * themselves. The library must be the one that was built for the LibTorch of the process.
 *
 * Functions return 0, or the exit code that the command line would have (see the README);
 * twinkle_last_error then says what failed, where, why, and what to do. Paths and texts are UTF-8.
 * Thread-safe; the last error belongs to its thread. */
#ifndef TWINKLE_C_H
#define TWINKLE_C_H

#ifdef __cplusplus
extern "C" {
#endif

#define TWINKLE_C_API __attribute__((visibility("default")))

/* "0.1.0" */
TWINKLE_C_API const char* twinkle_version(void);

/* Of the last call of this thread that failed: a few lines for a person, or JSON with the keys
 * code, what, where, why, hint. Valid until the next failing call of the thread; "" and "{}" before
 * the first. */
TWINKLE_C_API const char* twinkle_last_error(void);
TWINKLE_C_API const char* twinkle_last_error_json(void);

/* Frees what a function returned through a pointer. NULL is allowed. */
TWINKLE_C_API void twinkle_free(char* text);

/* Finds, verifies and loads the kernels that a kernelized model names, so that
 * torch::jit::load can read it. kernel_dirs: folders separated by ':', searched before
 * TWINKLE_KERNELS, the bundled kernels and the cache; or NULL. */
TWINKLE_C_API int twinkle_load_kernels(const char* model, const char* kernel_dirs);

/* Registers the layers of a file for this process: twinkle.toml, or the same keys in a file whose
 * name ends in .json. config: its path. */
TWINKLE_C_API int twinkle_register_kernels(const char* config);
/* Forgets everything that this process has registered. */
TWINKLE_C_API void twinkle_clear_kernels(void);

/* Reads a TorchScript model, kernelizes it, and writes the result; nothing is written on an error.
 * Nothing is compared with the original: the report says "verified": false. The command line
 * verifies (twinkle kernelize --inputs), in a process of its own.
 *
 * mapping: a twinkle.map.json; NULL: what twinkle_register_kernels has registered.
 * options: NULL, or JSON with any of
 *   {"mode": "inference", "device": "cpu", "dtype": "bfloat16", "load_kernels": true,
 *    "only": ["model.*"], "exclude": [], "strict": false,
 *    "use_fallback": true | false | ["no-layer", "no-device", "no-compatible-properties",
 *                                    "no-compatible-mode", "cannot-compile", "cannot-load"]}
 * report: NULL, or receives the report as JSON ("twinkle.kernelize/1"); free it with twinkle_free.
 */
TWINKLE_C_API int twinkle_kernelize_file(const char* model, const char* mapping, const char* output,
                                         const char* options, char** report);

#ifdef __cplusplus
}
#endif

#endif
