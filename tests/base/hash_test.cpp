#include <numeric>

#include "base/base64.h"
#include "base/evp.h"
#include "base/sha256.h"
#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::base;

TEST_CASE("SHA-256 of known inputs, whole and in pieces") {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    Sha256 pieces;
    pieces.update("a");
    pieces.update("");
    pieces.update("bc");
    CHECK(pieces.finish_hex() == sha256_hex("abc"));
}

TEST_CASE("hash_file streams files larger than its buffer") {
    test::TempFolder folder;
    std::string large(1'000'003, '\0');
    std::iota(large.begin(), large.end(), '\0');
    folder.write("large", large);
    const FileHash hash = hash_file(folder / "large");
    CHECK(hash.size == large.size());
    CHECK(hash.sha256 == sha256_hex(large));
    CHECK(test::error_of([&] { hash_file(folder / "none"); })->code() == ErrorCode::not_found);
}

TEST_CASE("base64 round trip; only the canonical spelling is read") {
    std::string bytes;
    for (int i = 0; i < 300; ++i) {
        CHECK(from_base64(to_base64(bytes)) == bytes);
        bytes += static_cast<char>(i * 7);
    }
    CHECK(to_base64("foob") == "Zm9vYg==");
    for (const char* wrong : {"Zm9vYg=", "Zm9vYg", "Zm9vYh==", "Zm9v\n", "=", "Zm9vY===", "Zm=v"}) {
        CHECK_FALSE(from_base64(wrong));
    }
}
