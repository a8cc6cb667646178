#define CATCH_CONFIG_MAIN  // Catch2 2 only; Catch2 3 brings its own main
#include <catch2/catch.hpp>
