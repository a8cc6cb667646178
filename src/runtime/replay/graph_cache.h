#pragma once
// The captured runs of a model by their keys, bounded by count and by bytes.

#include "runtime/replay/graph_backend.h"
#include "runtime/replay/graph_model.h"
#include "runtime/replay/static_inputs.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace twinkle::runtime {

// Destroyed in reverse: the inputs and early values first, then the run, in whose memory they are.
struct CapturedCall {
    std::shared_ptr<const CaptureCode> code;  // with weights that the run reads; null: it has none
    std::unique_ptr<CapturedRun> run;
    std::vector<c10::IValue> early;  // what the code computes once
    std::unique_ptr<StaticInputs> inputs;
};

class GraphCache {
public:
    struct Entry {
        std::string key;
        std::uint64_t uses = 0;  // halved now and then, so that it tells of the last calls
        bool has_run = false;    // plainly, to the end
        std::string refusal;     // why it is not captured again; empty: nothing is known
        std::size_t bytes = 0;   // of its present or former capture; 0: not known
        std::shared_ptr<CapturedCall> call;
    };

    GraphCache(std::size_t max_graphs, std::size_t max_bytes);

    void limit_bytes(std::size_t bytes) { max_bytes_ = bytes; }
    // Counts a use. The entry stays in place until the next non-const call.
    Entry& use(const std::string& key);
    Entry& find(const std::string& key);  // made where there is none; no use

    // Why this entry cannot be captured for want of room, with so many bytes (0: not known yet).
    // Empty: there is room, after less used entries were evicted.
    std::string make_room(const Entry& entry, std::size_t bytes);
    void put(Entry& entry, std::shared_ptr<CapturedCall> call);
    void clear();

    std::size_t graphs() const { return graphs_; }
    std::size_t bytes() const { return bytes_; }
    // Returns that of the graphs that have code of their own, which is the same for all; null: none
    // has.
    std::shared_ptr<const CaptureCode> capture_code() const;
    std::uint64_t evictions() const { return evictions_; }

private:
    using Entries = std::list<Entry>;  // most recently used first

    Entry* last_used_graph(const Entry& but);
    void drop(Entry& entry);
    void forget_the_oldest();
    void age();

    std::size_t max_graphs_;
    std::size_t max_bytes_;
    Entries entries_;
    std::unordered_map<std::string_view, Entries::iterator> by_key_;
    std::size_t graphs_ = 0;
    std::size_t bytes_ = 0;
    std::uint64_t evictions_ = 0;
    std::uint64_t uses_ = 0;
};

}  // namespace twinkle::runtime
