#pragma once
// The report of kernelize: one entry per site; nothing is replaced or kept silently.

#include "twinkle/api.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle {

enum class SiteStatus { replaced, kept, reverted };

// A candidate of the mapping for a site.
struct TWINKLE_API CandidateReport {
    std::string kernel;   // "twinkle-pack: RMSNorm"
    std::string variant;  // empty for a plain Python package
    std::string because;  // why it does not serve the site; empty for the one that was taken
};

// With --tune, where the best candidate differs by the size of the inputs: who serves calls of some
// sizes. Rows are the elements of the input that decides, over its last dimension.
struct TWINKLE_API SizeChoiceReport {
    std::int64_t from = 0;
    std::optional<std::int64_t> up_to;  // none: all that are larger
    std::string kernel;                 // empty: the original
};

// With --tune: what was found of a candidate in calls with up to so many rows.
struct TWINKLE_API SizeTimeReport {
    std::int64_t rows = 0;
    std::string kernel;        // empty: the original
    std::optional<double> us;  // of one call, beside the original
    std::string problem;       // why it must not serve them; empty: nothing is wrong
    bool from_store = false;   // known from an earlier run, not found by this one
};

// With --tune: how many of the times and problems in `measured` are of this run, and how many were
// known from the user's store. Each counts once, for however many sites that are called alike.
struct TWINKLE_API TuningReport {
    std::size_t measured = 0;
    std::size_t known = 0;
};

struct TWINKLE_API SiteReport {
    std::string site;  // "model.layers.0.mlp", the root module is ""
    std::string kind;  // layer, function, pattern
    std::string of;    // class or function, full name without mangling
    SiteStatus status = SiteStatus::kept;
    std::string kernel;   // "twinkle-pack: RMSNorm"; empty where nothing fits
    std::string variant;  // empty for a plain Python package
    std::string because;  // why it was taken, kept or put back
    // In order of preference; empty for a site that the options leave out.
    std::vector<CandidateReport> candidates;
    std::vector<SizeChoiceReport> by_size;  // empty: `kernel` serves every call
    std::vector<SizeTimeReport> measured;
    // With --verify: the error against a double-precision run of the original, of the kernelized
    // site and of the original itself, and the bound that held. For a site the largest difference
    // over the largest magnitude of that run; for the whole model the same in the Euclidean norm.
    std::optional<double> max_error;
    std::optional<double> original_error;
    std::optional<double> allowed_error;
    // Where it computes with fewer bits than the model ("int8"): errors are in the Euclidean norm,
    // and what is allowed is what the user has named for the whole.
    std::string precision{};
    // Of the whole model: the share of rows of its results whose largest value is in place.
    std::optional<double> agreement{};
    // Kept because a condition of its binding, or an option, says so: no failure, even where the
    // call is strict.
    bool as_asked = false;
};

// Constants in a model's code that tie it to where it was made: a trace holds the device and the
// dtype that its tensors had.
struct TWINKLE_API ConstantReport {
    std::size_t found = 0;                       // that stand in the way, or stood
    std::size_t rewritten = 0;                   // those replaced, and casts that were added
    std::size_t inserted = 0;                    // casts that were added
    std::size_t converted = 0;                   // weights
    std::vector<std::string> named;              // "cpu"; "float32"
    std::map<std::string, std::size_t> methods;  // "pkg.Class.forward", and how many
    std::vector<std::string> kept;  // buffers that stay float32, as the code reads them only so
};

struct TWINKLE_API Report {
    std::string mode;                  // inference, training, with +compile
    std::string device;                // cpu, cuda, …
    std::optional<std::string> dtype;  // that the model was converted to
    ConstantReport device_constants;
    ConstantReport dtype_constants;
    // With --verify and a dtype: the model that was converted, before any kernel, beside the
    // original in which every result is rounded to that dtype; in the Euclidean norm.
    std::optional<SiteReport> conversion;
    std::vector<SiteReport> sites;  // in the order of the module tree
    std::vector<std::string> warnings;
    SiteReport whole;  // errors and times of the whole model; site is ""
    bool verified = false;
    std::optional<TuningReport> tuning{};

    std::size_t count(SiteStatus status) const;
    std::string to_json() const;  // schema "twinkle.kernelize/1"
};

TWINKLE_API const char* site_status_name(SiteStatus status);

}  // namespace twinkle
