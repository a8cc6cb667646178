#include "worker/tuning_report.h"

#include "runtime/graph/format.h"

#include <algorithm>

namespace twinkle::worker {

namespace {

std::string name_of(const SizedSite& site, std::size_t candidate) {
    return candidate == 0 ? "" : site.candidates()[candidate - 1].describe();
}

std::string rows_text(const SizeChoiceReport& part) {
    return part.up_to ? fmt::format("{} to {} rows", part.from, *part.up_to)
                      : fmt::format("from {} rows on", part.from);
}

// The ratios in which a candidate was measured, with the rows.
std::vector<std::pair<std::int64_t, double>> speeds_of(
    const std::vector<tuning::MeasuredSize>& sizes, std::size_t candidate) {
    std::vector<std::pair<std::int64_t, double>> speeds;
    for (const tuning::MeasuredSize& size : sizes) {
        if (candidate < size.times.size() && size.times[candidate] && size.times[0]) {
            speeds.emplace_back(size.rows, static_cast<double>(size.times[0]->median) /
                                               static_cast<double>(size.times[candidate]->median));
        }
    }
    return speeds;
}

}  // namespace

std::string speed_text(const std::vector<tuning::MeasuredSize>& sizes, std::size_t candidate) {
    const auto speeds = speeds_of(sizes, candidate);
    if (speeds.empty()) {
        return "";
    }
    const auto [least, most] =
        std::minmax_element(speeds.begin(), speeds.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (speeds.size() == 1) {
        return fmt::format("{:.2f} times as fast as the original here", least->second);
    }
    return fmt::format("{:.2f} to {:.2f} times as fast as the original here, with {} to {} rows",
                       least->second, most->second, speeds.front().first, speeds.back().first);
}

std::string because_of(const std::vector<tuning::SizePart>& parts,
                       const std::vector<tuning::MeasuredSize>& sizes, const SizedSite& site) {
    if (parts.size() == 1) {
        const auto speed = speed_text(sizes, parts.front().candidate);
        return speed.empty() ? "" : "; " + speed;
    }
    std::vector<std::string> words;
    const auto shown = parts_report(parts, site);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string name = name_of(site, parts[i].candidate);
        words.push_back(rows_text(shown[i]) + ": " + (name.empty() ? "the original" : name));
    }
    return fmt::format("; {}", fmt::join(words, ", "));
}

std::vector<SizeChoiceReport> parts_report(const std::vector<tuning::SizePart>& parts,
                                           const SizedSite& site) {
    std::vector<SizeChoiceReport> report;
    std::int64_t from = 0;
    for (const tuning::SizePart& part : parts) {
        SizeChoiceReport& one = report.emplace_back();
        one.from = from;
        if (&part != &parts.back()) {
            one.up_to = part.up_to;
        }
        one.kernel = name_of(site, part.candidate);
        from = part.up_to + 1;
    }
    return report;
}

std::vector<SizeTimeReport> measured_report(const std::vector<tuning::MeasuredSize>& sizes,
                                            const SizedSite& site, const Measurements& known,
                                            std::set<const tuning::Entry*>& told) {
    std::vector<SizeTimeReport> report;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto* original = known.find(site.sizes()[i].invocation, site.original());
        const std::int64_t baseline = original != nullptr ? original->times.median : 0;
        for (std::size_t candidate = 0; candidate <= site.candidates().size(); ++candidate) {
            const auto* entry = known.find(
                site.sizes()[i].invocation,
                candidate == 0 ? site.original() : candidate_of(site.candidates()[candidate - 1]));
            if (entry == nullptr) {
                continue;
            }
            told.insert(entry);
            SizeTimeReport& one = report.emplace_back();
            one.rows = sizes[i].rows;
            one.kernel = name_of(site, candidate);
            one.problem = entry->problem;
            one.from_store = !known.is_new(*entry);
            if (entry->times.runs > 0) {
                one.us = static_cast<double>(tuning::beside(entry->times, baseline).median) / 1000;
            }
        }
    }
    return report;
}

}  // namespace twinkle::worker
