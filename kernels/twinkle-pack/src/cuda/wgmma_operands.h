#pragma once
// What the instructions of wgmma.h and wgmma_fp8.h name: the numbers of a product's tiles, eight
// columns each.

#define TWINKLE_TILE(tile) "+f"(tile.at[0]), "+f"(tile.at[1]), "+f"(tile.at[2]), "+f"(tile.at[3])
#define TWINKLE_TWO(at) TWINKLE_TILE(tiles[at]), TWINKLE_TILE(tiles[at + 1])
#define TWINKLE_FOUR(at) TWINKLE_TWO(at), TWINKLE_TWO(at + 2)
#define TWINKLE_EIGHT(at) TWINKLE_FOUR(at), TWINKLE_FOUR(at + 4)
#define TWINKLE_SIXTEEN(at) TWINKLE_EIGHT(at), TWINKLE_EIGHT(at + 8)

// Ten names that begin with the digits n, or with none.
#define TWINKLE_NAMES(n)                                                                   \
    "%" #n "0, %" #n "1, %" #n "2, %" #n "3, %" #n "4, %" #n "5, %" #n "6, %" #n "7, %" #n \
    "8, "                                                                                  \
    "%" #n "9, "
#define TWINKLE_30_NAMES TWINKLE_NAMES() TWINKLE_NAMES(1) TWINKLE_NAMES(2)
#define TWINKLE_60_NAMES TWINKLE_30_NAMES TWINKLE_NAMES(3) TWINKLE_NAMES(4) TWINKLE_NAMES(5)
#define TWINKLE_90_NAMES TWINKLE_60_NAMES TWINKLE_NAMES(6) TWINKLE_NAMES(7) TWINKLE_NAMES(8)
#define TWINKLE_120_NAMES TWINKLE_90_NAMES TWINKLE_NAMES(9) TWINKLE_NAMES(10) TWINKLE_NAMES(11)

// Starts a product: `shape` and `types` as the instruction has them, the tiles' names, those of A,
// B and whether to add, and what follows these.
#define TWINKLE_PRODUCT(shape, types, names, a, b, add_name, end)                 \
    "{\n"                                                                         \
    ".reg .pred add;\n"                                                           \
    "setp.ne.b32 add, " add_name                                                  \
    ", 0;\n"                                                                      \
    "wgmma.mma_async.sync.aligned." shape ".f32." types " {" names "}, " a ", " b \
    ", add, 1, 1" end                                                             \
    ";\n"                                                                         \
    "}"
