#pragma once
// What the command line asks of the worker: one JSON object (schema twinkle.request/1) on its
// standard input. Options were checked where the request was made.

#include "base/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::protocol {

struct Request {
    std::string command;
    std::filesystem::path model;
    std::string model_name;  // in an archive of several models
    std::optional<std::filesystem::path> output;
    std::optional<std::filesystem::path> report;
    std::optional<std::string> map;      // a mapping file's text: it is parsed where it is used
    std::optional<std::string> choices;  // kernelize: labels of another model's sites, as a text
    std::optional<std::string> mode;
    std::optional<std::string> device;
    std::optional<std::string> dtype;
    std::optional<std::string> inputs;     // a file, or what to make
    std::vector<std::string> more_inputs;  // kernelize: further samples
    std::string recorded_model;  // the class whose recorded calls are among these; empty: none are
    bool inputs_recorded = false;                 // the first inputs are such a call, too
    std::optional<std::string> graph;             // inspect: of this class, whole
    std::optional<std::filesystem::path> kernel;  // inspect-kernel, compile-kernel
    base::Json build;  // compile-kernel: {"op_namespace", "variant", "operators"}
    std::string method = "forward";
    std::vector<std::string> only;
    std::vector<std::string> exclude;
    std::vector<std::string> fallback;
    std::vector<std::string> warnings;  // of making the mapping, for the report
    std::vector<std::filesystem::path> kernel_dirs;
    std::optional<std::uint64_t> threads;
    std::optional<double> duration;  // bench, kernelize with tune: seconds of measuring
    std::optional<std::uint64_t> runs;
    std::uint64_t warm_up = 3;
    bool load_kernels = true;  // false: the model is for another machine
    bool verify = false;
    bool sizes = true;     // verify: in other sizes than those of the inputs, too
    double tolerance = 1;  // verify: how many times what may be an error is allowed
    // kernelize: coarser precisions that sites may compute in, as long as the model's error stays
    // below this, and so large a share of its results agrees.
    std::vector<std::string> precisions;
    double max_error = 0;
    std::optional<double> agree;
    bool tune = false;  // kernelize: candidates are measured, and the fastest is kept
    std::vector<std::int64_t> tune_sizes;  // … in these sizes of the inputs; empty: in usual ones
    // … of them and of all other measurements this share: number `shard` of `shards`.
    std::uint64_t shard = 1;
    std::uint64_t shards = 1;
    std::optional<std::uint64_t> gpu;      // … on this one of several
    std::vector<std::string> invocations;  // tune-operations: keys of them
    bool measure = false;                  // kernelize: the whole model against its original
    bool modules = false;                  // kernelize: the model's modules are to be in the result
    bool strict = false;
    bool dry_run = false;
    bool strip_debug = false;
    bool graphs = false;         // kernelize: the model is marked to be replayed as CUDA graphs
    bool freeze = false;         // kernelize: it is frozen; with tune, where that is faster
    bool profile_names = false;  // kernelize: sites are ranges of the profiler
    bool allow_io = false;       // code of the model may reach files, processes and the network

    base::Json to_json() const;

    // Throws Error(malformed): a command line of another version speaks to this worker. A key that
    // is missing, or of another type, has its default.
    static Request parse(const std::string& text);
};

}  // namespace twinkle::protocol
