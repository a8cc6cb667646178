#include "hub/download_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "cache/blob_store.h"
#include "cache/snapshot.h"
#include "twinkle/error.h"

namespace twinkle::hub {
namespace {

[[noreturn]] void refuse(const DownloadItem& item, const std::string& path, std::string why) {
    throw Error(
        ErrorCode::malformed,
        {.what = "the list of files of " + base::printable(item.repo_id) + " contradicts itself",
         .where = base::printable(item.commit) + "/" + base::printable(path),
         .why = std::move(why),
         .hint = ""});
}

}  // namespace

DownloadPlan plan_download(const cache::Cache& cache, std::span<const DownloadItem> items) {
    std::map<std::pair<std::string, std::string>, WantedBlob> wanted;
    std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> seen;
    DownloadPlan plan;
    for (const DownloadItem& item : items) {
        auto& etags = seen[{item.repo_id, item.commit}];
        for (const cache::TreeFile& file : item.files) {
            const auto [known, added] = etags.emplace(file.path, file.etag());
            if (!added) {
                if (known->second != file.etag()) {
                    refuse(item, file.path, "it names two contents for one path");
                }
                continue;  // asked for twice
            }
            if (cache::has_file(cache, item.repo_id, item.commit, file.path, file.size)) {
                ++plan.present;
                continue;
            }
            WantedBlob& blob = wanted[{item.repo_id, file.etag()}];
            if (blob.places.empty()) {
                blob = {item.repo_id, file.etag(), file.size, file.hash(), {}};
            } else if (blob.size != file.size) {
                refuse(item, file.path, "it names two sizes for one content");
            }
            blob.places.push_back({item.commit, file});
        }
    }
    for (auto& [key, blob] : wanted) {
        if (cache::has_blob(cache, blob.repo_id, blob.etag, blob.size)) {
            plan.present += blob.places.size();
            plan.to_link.push_back(std::move(blob));
        } else {
            plan.blobs.push_back(std::move(blob));
        }
    }
    std::stable_sort(plan.blobs.begin(), plan.blobs.end(),
                     [](const WantedBlob& a, const WantedBlob& b) { return a.size > b.size; });
    return plan;
}

}  // namespace twinkle::hub
