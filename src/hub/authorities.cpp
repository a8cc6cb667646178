#include "hub/authorities.h"

#include <algorithm>
#include <vector>

namespace fs = std::filesystem;

namespace twinkle::hub {
namespace {

constexpr const char* of_distributions[] = {
    "etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Gentoo
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "etc/pki/tls/certs/ca-bundle.crt",                   // older ones of these, Amazon
    "var/lib/ca-certificates/ca-bundle.pem",             // SUSE
    "etc/ssl/ca-bundle.pem",                             // older SUSE
    "etc/ssl/cert.pem",                                  // Alpine, BSD
    "etc/ssl/certs/ca-bundle.crt",                       // NixOS
};

std::vector<fs::path> of_python(const fs::path& prefix) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with("python3")) {
            const fs::path packages = entry->path() / "site-packages";
            found.push_back(packages / "certifi/cacert.pem");
            found.push_back(packages / "pip/_vendor/certifi/cacert.pem");
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

fs::path find_authorities(const fs::path& root, const fs::path& prefix) {
    std::vector<fs::path> places;
    for (const char* place : of_distributions) {
        places.push_back(root / place);
    }
    for (const fs::path& place : of_python(prefix)) {
        places.push_back(place);
    }
    std::error_code error;
    const auto found = std::find_if(places.begin(), places.end(), [&](const fs::path& place) {
        return fs::is_regular_file(place, error);
    });
    return found == places.end() ? fs::path() : *found;
}

}  // namespace twinkle::hub
