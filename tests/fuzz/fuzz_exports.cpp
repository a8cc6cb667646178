// Changed archives of torch.export through the converter:
//
//   fuzz_exports ARCHIVE COUNT [SEED [FOLDER]]
//
// says what became of them; exit 1 on an exception that is no Error, or on one archive that took
// more than a second of the processor. What was converted goes into FOLDER: SEED.pt2 and SEED.pt,
// for compare_exports.py. A crash ends it, and the archive that it was at is there: broken.pt2 in
// FOLDER, or in the folder for temporary files.

#include "archive/archive.h"
#include "archive/zip_directory.h"
#include "runtime/exported/convert.h"
#include "stored_zip.h"
#include "twinkle/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using twinkle::tests::Records;
using twinkle::tests::zip_of;
using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
    return limit == 0 ? 0 : random() % limit;
}

// The quoted texts and numbers of a document, as places in it.
std::vector<std::pair<std::size_t, std::size_t>> tokens_of(const std::string& text) {
    std::vector<std::pair<std::size_t, std::size_t>> tokens;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find_first_of("\"-0123456789tfn", at);
        if (begin == std::string::npos) {
            break;
        }
        std::size_t end = text[begin] == '"' ? text.find('"', begin + 1) + 1
                                             : text.find_first_of(",}] \n", begin);
        end = end == 0 || end == std::string::npos ? text.size() : end;
        tokens.emplace_back(begin, end - begin);
        at = end;
    }
    return tokens;
}

// A token becomes another of the document, or something that no document has.
std::string with_other_tokens(std::string text, Random& random) {
    static const std::vector<std::string> odd = {"-1",
                                                 "9223372036854775807",
                                                 "4611686018427387904",
                                                 "1e308",
                                                 "null",
                                                 "true",
                                                 "\"\"",
                                                 "[]",
                                                 "{}",
                                                 "\"x\"",
                                                 "0",
                                                 "\"NaN\""};
    for (std::size_t count = 1 + below(random, 3); count > 0; --count) {
        const auto tokens = tokens_of(text);
        if (tokens.empty()) {
            return text;
        }
        const auto [at, size] = tokens[below(random, tokens.size())];
        const auto [from, length] = tokens[below(random, tokens.size())];
        text.replace(at, size,
                     below(random, 3) == 0 ? odd[below(random, odd.size())]
                                           : std::string(text.substr(from, length)));
    }
    return text;
}

std::string with_other_bytes(std::string bytes, Random& random) {
    for (std::size_t count = 1 + below(random, 8); count > 0 && !bytes.empty(); --count) {
        bytes[below(random, bytes.size())] = static_cast<char>(random());
    }
    return below(random, 8) == 0 ? bytes.substr(0, below(random, bytes.size())) : bytes;
}

std::string mutated(Records records, Random& random) {
    std::vector<std::size_t> documents;
    std::vector<std::size_t> weights;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i].first.ends_with(".json")) {
            documents.push_back(i);
        } else if (records[i].first.starts_with("model/data/")) {
            weights.push_back(i);
        }
    }
    auto& chosen = records[documents[below(random, documents.size())]].second;
    switch (below(random, 9)) {
        case 8: {
            if (!weights.empty()) {
                auto& weight = records[weights[below(random, weights.size())]].second;
                weight = with_other_bytes(weight, random);
            }
            break;
        }
        case 0: return with_other_bytes(zip_of(records), random);
        case 1: chosen = with_other_bytes(chosen, random); break;
        case 2:
            records.erase(records.begin() + static_cast<long>(below(random, records.size())));
            break;
        default: chosen = with_other_tokens(chosen, random);
    }
    return zip_of(records);
}

Records records_of(const fs::path& file) {
    const twinkle::archive::Archive archive(file);
    Records records;
    const auto entries = twinkle::archive::zip_directory(file);
    for (const auto& entry : *entries) {
        const std::string name = entry.name.substr(entry.name.find('/') + 1);
        records.emplace_back("model/" + name, archive.text(name, archive.size_of(name)));
    }
    return records;
}

struct Folder {
    fs::path path;
    bool keeps = false;
};

// "converted", or the code of the Error.
std::string outcome_of(const Folder& folder, const std::string& name) {
    const fs::path broken = folder.path / "broken.pt2";
    try {
        const auto model =
            twinkle::runtime::exported::convert(twinkle::archive::Archive(broken), "");
        if (folder.keeps) {
            model.save((folder.path / (name + ".pt")).string());
            fs::copy_file(broken, folder.path / (name + ".pt2"),
                          fs::copy_options::overwrite_existing);
        }
        return "converted";
    } catch (const twinkle::Error& error) {
        return std::string(twinkle::error_code_name(error.code()));
    } catch (const std::exception& error) {
        std::printf("seed %s: %s\n", name.c_str(), error.what());
        return "no Error";
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "fuzz_exports ARCHIVE COUNT [SEED [FOLDER]]\n");
        return 2;
    }
    const Records seed = records_of(argv[1]);
    const auto first = static_cast<unsigned>(argc > 3 ? std::atoi(argv[3]) : 1);
    const Folder folder{argc > 4 ? fs::path(argv[4]) : fs::temp_directory_path(), argc > 4};
    std::map<std::string, int> outcomes;
    double longest = 0;
    for (unsigned i = 0; i < static_cast<unsigned>(std::atoi(argv[2])); ++i) {
        Random random(first + i);
        std::ofstream(folder.path / "broken.pt2", std::ios::binary | std::ios::trunc)
            << mutated(seed, random);
        const std::clock_t start = std::clock();
        const std::string outcome = outcome_of(folder, std::to_string(first + i));
        const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        longest = std::max(longest, seconds);
        if (seconds > 1) {
            std::printf("seed %u: %.1f seconds, %s\n", first + i, seconds, outcome.c_str());
            ++outcomes["longer than a second"];
        }
        ++outcomes[outcome];
    }
    for (const auto& [outcome, count] : outcomes) {
        std::printf("%s: %d\n", outcome.c_str(), count);
    }
    std::printf("longest: %.3f seconds\n", longest);
    fs::remove(folder.path / "broken.pt2");
    return outcomes.contains("no Error") || outcomes.contains("longer than a second") ? 1 : 0;
}
