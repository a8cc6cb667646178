#pragma once
// Mutates saved models: their bytes, the records of their archive, their code, their pickles.

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::fuzz {

struct SeedModel {
    std::string name;
    std::string bytes;
    std::vector<std::pair<std::string, std::string>> records;  // without those that a writer adds
};

SeedModel read_seed(const std::string& file);

// A mutated model, deterministic by the state of `random`. `how` names the mutation.
std::string mutate_model(const SeedModel& seed, std::mt19937& random, std::string& how);

}  // namespace twinkle::fuzz
