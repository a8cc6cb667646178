#pragma once
// The work of a download: files of equal content in one repository are one blob, and blobs in the
// cache are left out.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/content_hash.h"
#include "cache/layout.h"
#include "cache/tree_file.h"
#include "hub/download.h"

namespace twinkle::hub {

// A blob and the snapshot files that link to it.
struct WantedBlob {
    struct Place {
        std::string commit;
        cache::TreeFile file;
    };
    std::string repo_id;
    std::string etag;
    std::uint64_t size = 0;
    cache::ContentHash hash;
    std::vector<Place> places;

    DownloadFile name() const {
        return {repo_id, places.front().commit, places.front().file.path, size};
    }
};

struct DownloadPlan {
    std::vector<WantedBlob> blobs;    // not in the cache; the largest first
    std::vector<WantedBlob> to_link;  // in the cache, but not in every snapshot
    std::uint64_t present = 0;        // files whose bytes are in the cache
};

// Throws Error(malformed) if a list of files contradicts itself.
DownloadPlan plan_download(const cache::Cache& cache, std::span<const DownloadItem> items);

}  // namespace twinkle::hub
