#include "runtime/model/valid_archive.h"

#include "archive/zip_directory.h"
#include "base/text.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/model/io_operators.h"
#include "runtime/model/load_time_code.h"
#include "runtime/model/valid_code.h"
#include "runtime/model/valid_pickle.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace twinkle::runtime {

using namespace archive;

namespace {

using Reader = caffe2::serialize::PyTorchStreamReader;

// Owns a record while its text is used.
class Record {
public:
    Record(Reader& archive, const std::string& name) : data_(archive.getRecord(name)) {}
    std::string_view text() const {
        return {static_cast<const char*>(std::get<0>(data_).get()), std::get<1>(data_)};
    }

private:
    std::tuple<at::DataPtr, std::size_t> data_;
};

// LibTorch reads the record anew for each storage, however often one is named.
std::optional<std::string> invalid_storages(Reader& archive, const std::string& folder,
                                            const std::vector<PickledStorage>& storages,
                                            std::uint64_t most) {
    std::uint64_t total = 0;
    for (const PickledStorage& storage : storages) {
        const std::string record = folder + "/" + storage.key;
        const std::uint64_t size = archive.hasRecord(record) ? archive.getRecordSize(record) : 0;
        if (size < storage.bytes || !archive.hasRecord(record)) {
            return base::printable(record) + " is missing or shorter than it should be";
        }
        total += size;
        if (total > most) {
            return "it has the same weights over and over";
        }
    }
    return std::nullopt;
}

// The limit for weights that were compressed is in invalid_sizes.
constexpr std::uint64_t compressed_weights = 64u << 20;

std::optional<std::string> invalid_values(Reader& archive, const std::string& name,
                                          std::uint64_t bytes, std::vector<std::string>* globals) {
    std::vector<PickledStorage> storages;
    const Record record(archive, name);
    if (const auto problem = invalid_pickle(record.text(), &storages, globals)) {
        return name + ": " + *problem;
    }
    return invalid_storages(archive, name.substr(0, name.find('.')), storages,
                            2 * bytes + compressed_weights);
}

// Objects of classes that are not TorchScript are made by a library's code.
std::optional<std::string> unfit_class(const std::vector<std::string>& globals) {
    constexpr std::string_view foreign = "__torch__.torch.classes.";
    for (const std::string& name : globals) {
        if (name.starts_with(foreign)) {
            const std::string type = name.substr(foreign.size());
            if (const auto does = io_of_class(type)) {
                return "it holds an object of torch.classes." + base::printable(type) + ", which " +
                       *does;
            }
        }
    }
    return std::nullopt;
}

// A record's module in LibTorch's lookup: "code/__torch__/pkg/mod.py".
std::string module_of(std::string name) {
    name = name.substr(std::string_view("code/").size());
    name = name.substr(0, name.rfind(".py"));
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

void examine_code(const std::vector<std::pair<std::string, Record>>& code, Validity& found) {
    std::vector<SavedSource> sources;
    for (const auto& [name, record] : code) {
        found.problem = invalid_code(record.text());
        if (found.problem) {
            return;
        }
        sources.push_back({module_of(name), record.text()});
    }
    try {
        const LoadTimeCode run = load_time_code(sources);
        found.runs_code = run.runs;
        found.reaches_out = run.problem;
    } catch (const std::exception&) {
        found.problem = "its code is not what TorchScript writes";
    }
}

}  // namespace

std::optional<std::string> invalid_data(Reader& archive, std::uint64_t bytes) {
    return invalid_values(archive, "data.pkl", bytes, nullptr);
}

// Compares names of records as LibTorch does: it ignores case and does not require ".py".
Validity examine_archive(Reader& archive, std::uint64_t bytes) {
    Validity found;
    std::vector<std::pair<std::string, Record>> code;
    std::vector<std::string> globals;
    for (const std::string& name : archive.getAllRecords()) {
        const std::string known = folded_name(name);
        if (known.starts_with("code/") && known.ends_with(".debug_pkl")) {
            found.readable_origin =
                found.readable_origin && !invalid_pickle(Record(archive, name).text());
        } else if (known.starts_with("code/")) {
            code.emplace_back(name, Record(archive, name));
        } else if ((known == "data.pkl" || known == "constants.pkl") && !found.problem) {
            found.problem = invalid_values(archive, known, bytes, &globals);
        }
    }
    if (!found.problem) {
        examine_code(code, found);
    }
    if (!found.reaches_out) {
        found.reaches_out = unfit_class(globals);
    }
    return found;
}

bool origins_can_be_read(const torch::jit::Module& model) {
    std::set<const void*> sources;
    try {
        for (const auto& graph : graphs_of(model)) {
            for (const auto* node : graph->nodes()) {
                const auto range = node->sourceRange();
                if (sources.insert(range.source().get()).second) {
                    range.findSourceRangeThatGenerated();
                }
            }
        }
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

}  // namespace twinkle::runtime
