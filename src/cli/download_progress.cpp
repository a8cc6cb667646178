#include "cli/download_progress.h"

#include <algorithm>
#include <vector>

#include "base/quantity.h"

namespace twinkle::cli {
namespace {

constexpr std::size_t most_lines = 8;
constexpr auto interval = std::chrono::milliseconds(80);

std::string bar(std::uint64_t done, std::uint64_t size) {
    constexpr std::uint64_t width = 20;
    const auto full = size > 0 ? std::min(width, done * width / size) : width;
    return "[" + std::string(full, '=') + std::string(width - full, ' ') + "]";
}

}  // namespace

std::string DownloadProgress::key(const hub::DownloadFile& file) {
    return file.repo_id + "/" + file.path;
}

void DownloadProgress::planned(std::uint64_t files, std::uint64_t bytes) {
    files_ = files;
    bytes_ = bytes;
    started_ = Clock::now();
}

void DownloadProgress::file_started(const hub::DownloadFile& file, std::uint64_t done) {
    lines_[key(file)] = {done, file.size, ""};
    bytes_before_ += done;
    draw(false);
}

void DownloadProgress::file_progress(const hub::DownloadFile& file, std::uint64_t done) {
    lines_[key(file)].done = done;
    draw(false);
}

void DownloadProgress::file_done(const hub::DownloadFile& file, bool from_cache) {
    lines_.erase(key(file));
    ++files_done_;
    bytes_done_ += file.size;
    bytes_before_ += from_cache ? file.size : 0;
    if (files_done_ == files_) {
        progress_.clear();
    } else {
        draw(false);
    }
}

void DownloadProgress::file_waiting(const hub::DownloadFile& file, const std::string& holder) {
    lines_[key(file)] = {0, file.size, holder.empty() ? "another process" : holder};
    draw(true);
}

void DownloadProgress::draw(bool at_once) {
    const auto now = Clock::now();
    if (!progress_.enabled() || (!at_once && now - drawn_ < interval)) {
        return;
    }
    drawn_ = now;
    std::vector<std::string> text;
    for (const auto& [name, line] : lines_) {
        if (text.size() == most_lines) {
            text.push_back("… and " + std::to_string(lines_.size() - most_lines) + " more");
            break;
        }
        text.push_back(line.waiting_for.empty()
                           ? bar(line.done, line.size) + " " + name + "  " +
                                 base::human_bytes(line.done) + "/" + base::human_bytes(line.size)
                           : "waiting for " + line.waiting_for + ": " + name);
    }
    text.push_back(total_line(now));
    progress_.show(text);
}

std::string DownloadProgress::total_line(Clock::time_point now) const {
    std::uint64_t done = bytes_done_;
    for (const auto& [name, line] : lines_) {
        done += line.done;
    }
    std::string text = std::to_string(files_done_) + "/" + base::counted(files_, "file") + "  " +
                       base::human_bytes(done) + "/" + base::human_bytes(bytes_);
    const std::chrono::duration<double> elapsed = now - started_;
    const auto fresh = done > bytes_before_ ? done - bytes_before_ : 0;
    if (elapsed.count() > 0.5 && fresh > 0) {
        const double speed = static_cast<double>(fresh) / elapsed.count();
        const auto rest = static_cast<double>(bytes_ > done ? bytes_ - done : 0) / speed;
        text += "  " + base::human_bytes(static_cast<std::uint64_t>(speed)) + "/s  " +
                base::human_duration(std::chrono::seconds(static_cast<long>(rest))) + " left";
    }
    return text;
}

}  // namespace twinkle::cli
