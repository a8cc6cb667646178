#include "hub/download_answer.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cache/layout.h"
#include "hub/headers.h"

namespace twinkle::hub {

std::string bytes_text(std::uint64_t count) {
    return std::to_string(count) + " bytes";
}

std::optional<Flaw> identity_flaw(const Head& head, const std::string& expected_commit,
                                  const std::string& expected_etag) {
    const auto commit = head.hub_headers.get("x-repo-commit");
    if (commit && cache::is_commit(*commit) && *commit != expected_commit) {
        return Flaw{"the commit " + expected_commit, "the commit " + std::string(*commit)};
    }
    auto etag = head.hub_headers.get("x-linked-etag");
    if (!etag) {
        etag = head.hub_headers.get("etag");
    }
    // Mirrors may make up their own ETags.
    const std::string plain = etag ? plain_etag(*etag) : "";
    if (cache::is_etag(plain) && plain != expected_etag) {
        return Flaw{"the ETag " + expected_etag, "the ETag " + plain};
    }
    return std::nullopt;
}

std::optional<Flaw> size_flaw(const Head& head, bool ranged, const cache::Segment& segment,
                              std::uint64_t size) {
    if (head.status == 206) {
        const auto header = head.headers.get("content-range");
        const auto range = header ? content_range(*header) : std::nullopt;
        if (!ranged || !range || range->first != segment.next() || range->last >= segment.end) {
            return Flaw{fmt::format("the bytes {}-{}", segment.next(), segment.end - 1),
                        header ? "Content-Range: " + base::printable(*header) : "no Content-Range"};
        }
    } else if (head.status != 200) {
        return Flaw{"status 200", "status " + std::to_string(head.status)};
    }
    const auto total = head.total_size();
    if (total && *total != size) {
        return Flaw{bytes_text(size), bytes_text(*total)};
    }
    return std::nullopt;
}

}  // namespace twinkle::hub
