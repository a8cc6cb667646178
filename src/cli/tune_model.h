#pragma once
// twinkle tune MODEL: measures the candidates of a model's sites, for the user's store and, with
// -o, for a model in which each call gets the fastest.

#include "cli/command.h"
#include "cli/console.h"

namespace twinkle::cli {

int run_tune_model(const Arguments& arguments, Console& console);

}  // namespace twinkle::cli
