#pragma once
// A download on a terminal: a line for each arriving file, and below them progress, speed and
// remaining time of the whole.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/progress.h"
#include "hub/download.h"

namespace twinkle::cli {

class DownloadProgress : public hub::DownloadObserver {
public:
    explicit DownloadProgress(base::Progress& progress) : progress_(progress) {}

    void planned(std::uint64_t files, std::uint64_t bytes) override;
    void file_started(const hub::DownloadFile& file, std::uint64_t done) override;
    void file_progress(const hub::DownloadFile& file, std::uint64_t done) override;
    void file_done(const hub::DownloadFile& file, bool from_cache) override;
    void file_waiting(const hub::DownloadFile& file, const std::string& holder) override;

private:
    using Clock = std::chrono::steady_clock;
    struct Line {
        std::uint64_t done = 0;
        std::uint64_t size = 0;
        std::string waiting_for;
    };
    static std::string key(const hub::DownloadFile& file);
    void draw(bool now);
    std::string total_line(Clock::time_point now) const;

    base::Progress& progress_;
    std::map<std::string, Line> lines_;
    std::uint64_t files_ = 0, files_done_ = 0;
    std::uint64_t bytes_ = 0, bytes_done_ = 0;  // of files that are complete
    std::uint64_t bytes_before_ = 0;            // present at the start
    Clock::time_point started_{}, drawn_{};
};

}  // namespace twinkle::cli
