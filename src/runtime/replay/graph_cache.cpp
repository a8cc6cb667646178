#include "runtime/replay/graph_cache.h"

#include "base/quantity.h"

#include <utility>

namespace twinkle::runtime {

namespace {

constexpr std::size_t known_keys = 4096;  // a server may see a new shape with every call
constexpr std::uint64_t calls_of_an_age = 4096;
// Guards against thrashing: if more shapes recur than fit, each would evict another and be captured
// again, which takes a hundred times as long as a run.
constexpr std::uint64_t as_often = 2;

}  // namespace

GraphCache::GraphCache(std::size_t max_graphs, std::size_t max_bytes)
    : max_graphs_(max_graphs), max_bytes_(max_bytes) {}

GraphCache::Entry& GraphCache::use(const std::string& key) {
    age();
    Entry& entry = find(key);
    ++entry.uses;
    entries_.splice(entries_.begin(), entries_, by_key_.at(entry.key));
    return entry;
}

std::shared_ptr<const CaptureCode> GraphCache::capture_code() const {
    for (const Entry& entry : entries_) {
        if (entry.call && entry.call->code) {
            return entry.call->code;
        }
    }
    return nullptr;
}

GraphCache::Entry& GraphCache::find(const std::string& key) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
        return *found->second;
    }
    forget_the_oldest();
    entries_.push_front({});
    entries_.front().key = key;
    by_key_.emplace(entries_.front().key, entries_.begin());
    return entries_.front();
}

std::string GraphCache::make_room(const Entry& entry, std::size_t bytes) {
    if (max_graphs_ == 0 || bytes > max_bytes_) {
        return max_graphs_ == 0 ? "no graphs are allowed"
                                : "its graph needs " + base::human_bytes(bytes) + " of " +
                                      base::human_bytes(max_bytes_) + " allowed";
    }
    while (graphs_ >= max_graphs_ || bytes_ + bytes > max_bytes_) {
        Entry* oldest = last_used_graph(entry);
        if (!oldest || entry.uses <= as_often * oldest->uses) {
            return "other shapes, used as often, have all the graphs or memory allowed";
        }
        drop(*oldest);
        ++evictions_;
    }
    return {};
}

void GraphCache::put(Entry& entry, std::shared_ptr<CapturedCall> call) {
    drop(entry);
    entry.bytes = call->run->bytes();
    entry.call = std::move(call);
    entry.refusal.clear();
    bytes_ += entry.bytes;
    ++graphs_;
}

void GraphCache::clear() {
    by_key_.clear();
    entries_.clear();
    graphs_ = 0;
    bytes_ = 0;
}

GraphCache::Entry* GraphCache::last_used_graph(const Entry& but) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
        if (entry->call && &*entry != &but) {
            return &*entry;
        }
    }
    return nullptr;
}

void GraphCache::drop(Entry& entry) {
    if (entry.call) {
        entry.call.reset();
        bytes_ -= entry.bytes;
        --graphs_;
    }
}

// Drops the oldest entry without a graph; a cache of sensible size has more of these than graphs.
void GraphCache::forget_the_oldest() {
    if (entries_.size() < known_keys + max_graphs_) {
        return;
    }
    for (auto entry = std::prev(entries_.end());; --entry) {
        if (!entry->call) {
            by_key_.erase(entry->key);
            entries_.erase(entry);
            return;
        }
        if (entry == entries_.begin()) {
            return;
        }
    }
}

void GraphCache::age() {
    if (++uses_ % calls_of_an_age == 0) {
        for (Entry& entry : entries_) {
            entry.uses /= 2;
        }
    }
}

}  // namespace twinkle::runtime
