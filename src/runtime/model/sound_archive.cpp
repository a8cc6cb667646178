#include "runtime/model/sound_archive.h"

#include "base/text.h"
#include "runtime/model/graph_walk.h"
#include "runtime/model/sound_code.h"
#include "runtime/model/sound_pickle.h"

#include <torch/csrc/jit/ir/ir.h>

#include <set>

namespace twinkle::runtime {

namespace {

std::optional<std::string> missing_storage(caffe2::serialize::PyTorchStreamReader& archive,
                                           const std::string& folder,
                                           const std::vector<PickledStorage>& storages) {
    for (const PickledStorage& storage : storages) {
        const std::string record = folder + "/" + storage.key;
        if (!archive.hasRecord(record) || archive.getRecordSize(record) < storage.bytes) {
            return base::printable(record) + " is missing or shorter than it should be";
        }
    }
    return std::nullopt;
}

}  // namespace

Soundness examine_archive(caffe2::serialize::PyTorchStreamReader& archive) {
    Soundness found;
    for (const std::string& name : archive.getAllRecords()) {
        const bool debug = name.ends_with(".debug_pkl");
        const bool code = name.ends_with(".py") && name.starts_with("code/");
        if (found.problem || (!code && !debug && name != "data.pkl" && name != "constants.pkl")) {
            continue;
        }
        const auto [data, size] = archive.getRecord(name);
        const std::string_view content(static_cast<const char*>(data.get()), size);
        std::vector<PickledStorage> storages;
        const auto problem =
            code ? unsound_code(content) : unsound_pickle(content, debug ? nullptr : &storages);
        if (debug) {
            found.readable_origin = found.readable_origin && !problem;
        } else if (problem) {
            found.problem = (code ? "" : name + ": ") + *problem;
        } else {
            found.problem = missing_storage(archive, name.substr(0, name.find('.')), storages);
        }
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
