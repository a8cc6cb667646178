#pragma once
// Keeps two tuners from measuring the same at once, by a file that only one process can create: no
// lock of the file system is asked for. It saves work and nothing else: where two believe that they
// hold one (its deadline has passed and both go on, the clock was set), both measure, and what they
// write is joined.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/folder.h"

namespace twinkle::tuning {

using Clock = std::function<std::chrono::system_clock::time_point()>;
Clock system_clock();

inline constexpr std::chrono::seconds longest_lease = std::chrono::hours(1);

// Given back when it goes.
class Lease {
public:
    Lease(const base::Folder& folder, std::filesystem::path file, std::string text)
        : folder_(folder), file_(std::move(file)), text_(std::move(text)) {}
    Lease(Lease&& other) noexcept
        : folder_(std::move(other.folder_)),
          file_(std::exchange(other.file_, {})),
          text_(std::move(other.text_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() { give_back(); }

    void give_back();

private:
    base::Folder folder_;
    std::filesystem::path file_;  // empty: moved from, or given back
    std::string text_;
};

struct LeaseAttempt {
    std::optional<Lease> lease{};
    std::string holder{};   // who has it: "process 4711 on host"; empty: nobody
    std::string problem{};  // why no lease can be had there ("the file system is read-only")
};

// Its folder is made. A lease whose deadline has passed, whose process is gone, or that lies more
// than longest_lease ahead (the clock was set back) is taken over.
LeaseAttempt take_lease(const base::Folder& folder, const std::filesystem::path& file,
                        std::chrono::seconds duration, const Clock& clock);

}  // namespace twinkle::tuning
