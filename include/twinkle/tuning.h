#pragma once
// Everything about operations with configurations in one header.
#include "twinkle/batching.h"
#include "twinkle/executor.h"
#include "twinkle/labels.h"
#include "twinkle/operation.h"
#include "twinkle/ops.h"
#include "twinkle/record.h"
#include "twinkle/selector.h"
