// The loops, in the order of their dependencies.

// clang-format off
#include "loops/half_conversion.h"
#include "loops/common.h"
#include "loops/fused.h"
#include "loops/activations.h"
#include "loops/elementwise.h"
#include "loops/sums.h"
#include "loops/norms.h"
#include "loops/norms_backward.h"
#include "loops/rotary.h"
#include "loops/linear_finish.h"
#include "loops/linear_few.h"
#include "loops/linear_many.h"
#include "loops/bits_rounding.h"
#include "loops/bits_blocks.h"
#include "loops/table.h"
// clang-format on
