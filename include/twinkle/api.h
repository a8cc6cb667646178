#pragma once
// Marks what libtwinkle exports; everything else is hidden.
#define TWINKLE_API __attribute__((visibility("default")))
