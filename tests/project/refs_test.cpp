#include "project/refs.h"

#include "catch.h"

using namespace twinkle::project;

TEST_CASE("a branch is a version if it is v and a number as it is written") {
    CHECK(version_of("v0") == 0);
    CHECK(version_of("v12") == 12);
    for (const char* other : {"", "v", "v-1", "v+1", "v01", "v1.0", "1", "V1", "v12345678"}) {
        INFO(other);
        CHECK_FALSE(version_of(other));
    }
}

TEST_CASE("a pin means one of the refs that are known") {
    const KnownRefs known{{{"main", "a"}, {"v2", "b"}, {"v10", "c"}, {"v09", "d"}},
                          {{"v0.1.0", "e"}, {"v0.2.0", "f"}}};
    CHECK(ref_of({}, known) == "v10");
    CHECK(ref_of({}, {{{"main", "a"}}, {}}) == "main");
    CHECK(ref_of({.version = 3}, known) == "v3");
    CHECK(ref_of({.revision = "main"}, known) == "main");
    CHECK(ref_of({.specifier = "<0.2"}, known) == "v0.1.0");
    CHECK_FALSE(ref_of({.specifier = ">=1"}, known));
    CHECK(known.versions().size() == 2);
    CHECK(known.versions().back().ref() == "v10");
}
