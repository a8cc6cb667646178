#include "base/freed_memory.h"

#include <malloc.h>
#include <cstdlib>

#include "catch.h"

using twinkle::base::keep_freed_memory;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Blocks that come from the system alone, and go back there when they are freed.
TEST_CASE("blocks of a model's results are not given back one by one", "[base]") {
    keep_freed_memory();
    for (const std::size_t size : {std::size_t{1} << 20, std::size_t{24} << 20}) {
        const auto before = mallinfo2().hblks;
        void* const block = std::malloc(size);
        REQUIRE(block != nullptr);
        CHECK(mallinfo2().hblks == before);
        std::free(block);
    }
}

#endif
