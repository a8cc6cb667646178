#include "project/requests.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

class RequestCollector {
public:
    void add(const std::string& repo_id, Pin pin, const std::string& where) {
        const bool unpinned = pin.empty();
        if (unpinned) {
            pin.revision = "main";
        }
        const auto found = std::find_if(
            requests_.begin(), requests_.end(),
            [&](const HubRequest& other) { return other.repo_id == repo_id && other.pin == pin; });
        if (found == requests_.end()) {
            requests_.push_back({repo_id, std::move(pin), unpinned, {where}});
        } else {
            found->unpinned = found->unpinned && unpinned;
            found->where.push_back(where);
        }
    }

    std::vector<HubRequest> take() {
        std::sort(requests_.begin(), requests_.end(), [](const HubRequest& a, const HubRequest& b) {
            return a.repo_id != b.repo_id ? a.repo_id < b.repo_id : comes_before(a.pin, b.pin);
        });
        return std::move(requests_);
    }

private:
    std::vector<HubRequest> requests_;
};

Pin pin_from_kernels(const Manifest& manifest, const std::string& repo_id, const std::string& who,
                     const std::string& where) {
    std::vector<Pin> pins;
    std::vector<std::string> texts;
    for (const KernelRequest& request : manifest.kernels) {
        if (request.key == repo_id && request.path.empty()) {
            pins.push_back(request.pin);
            texts.push_back(request.pin.text());
        }
    }
    if (pins.size() > 1) {
        throw Error(ErrorCode::malformed,
                    {.what = who + " does not say which version of " + repo_id + " it is from",
                     .where = where,
                     .why = "[kernels] has several: " + base::join(texts, ", "),
                     .hint = "add version = …"});
    }
    return pins.empty() ? Pin{} : pins.front();
}

}  // namespace

Pin pin_of(const Manifest& manifest, const LayerBinding& layer) {
    return !layer.pin.empty()
               ? layer.pin
               : pin_from_kernels(manifest, layer.repo_id,
                                  "the layer \"" + layer.kernel_name + "\"", layer.where);
}

Pin pin_of(const Manifest& manifest, const FunctionBinding& function) {
    return !function.pin.empty()
               ? function.pin
               : pin_from_kernels(manifest, function.repo_id,
                                  "the function \"" + function.name + "\"", function.where);
}

std::vector<HubRequest> hub_requests(const Manifest& manifest) {
    RequestCollector collector;
    for (const KernelRequest& request : manifest.kernels) {
        if (request.path.empty()) {
            collector.add(request.key, request.pin, request.where);
        }
    }
    const auto add = [&](const auto& binding) {
        if (!binding.repo_id.empty()) {
            collector.add(binding.repo_id, pin_of(manifest, binding), binding.where);
        }
    };
    std::ranges::for_each(manifest.layers, add);
    std::ranges::for_each(manifest.functions, add);
    std::ranges::for_each(manifest.patterns, add, &PatternBinding::replacement);
    return collector.take();
}

fs::path local_folder(const fs::path& repo_path, const std::string& package_name) {
    std::error_code error;
    const fs::path package = repo_path / package_name;
    const bool inside = !package_name.empty() && fs::is_directory(package, error);
    return inside ? package : repo_path;
}

std::string local_name(const Manifest& manifest, const fs::path& folder) {
    for (const KernelRequest& request : manifest.kernels) {
        if (!request.path.empty() && request.path == folder) {
            return request.key;
        }
    }
    const fs::path home = base::absolute_path(manifest.file).parent_path();
    return folder.lexically_relative(home).generic_string();
}

std::vector<KernelRequest> local_requests(const Manifest& manifest) {
    std::vector<KernelRequest> requests;
    const auto add = [&](KernelRequest request) {
        const auto same = [&](const KernelRequest& other) { return other.key == request.key; };
        if (std::none_of(requests.begin(), requests.end(), same)) {
            requests.push_back(std::move(request));
        }
    };
    for (const KernelRequest& request : manifest.kernels) {
        if (!request.path.empty()) {
            add(request);
        }
    }
    const auto add_named = [&](const auto& binding) {
        if (!binding.repo_path.empty()) {
            const fs::path folder = local_folder(binding.repo_path, binding.package_name);
            add({local_name(manifest, folder), {}, folder, binding.where});
        }
    };
    std::ranges::for_each(manifest.layers, add_named);
    std::ranges::for_each(manifest.functions, add_named);
    std::ranges::for_each(manifest.patterns, add_named, &PatternBinding::replacement);
    std::sort(requests.begin(), requests.end(),
              [](const KernelRequest& a, const KernelRequest& b) { return a.key < b.key; });
    return requests;
}

std::vector<std::string> unpinned_warnings(const std::vector<HubRequest>& requests) {
    std::vector<std::string> warnings;
    for (const HubRequest& request : requests) {
        if (request.unpinned) {
            warnings.push_back(request.where.front() + ": " + request.repo_id +
                               " has neither version nor revision: its branch main is used");
        }
    }
    return warnings;
}

}  // namespace twinkle::project
