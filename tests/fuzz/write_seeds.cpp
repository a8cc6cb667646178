// Writes the fuzzers' seeds: fuzz_seeds FOLDER. They get the folder by
// TWINKLE_FUZZ_SEEDS.
#include <iostream>

#include "world.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: fuzz_seeds FOLDER\n";
        return 2;
    }
    twinkle::fuzz::write_world(twinkle::fuzz::make_world(), argv[1]);
    return 0;
}
