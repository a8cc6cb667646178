#pragma once
// Everything of libtwinkle in one header, but for operations with configurations (tuning.h).
#include "twinkle/error.h"
#include "twinkle/graphed_model.h"
#include "twinkle/kernel.h"
#include "twinkle/kernelize.h"
#include "twinkle/load.h"
#include "twinkle/mapping.h"
#include "twinkle/registry.h"
#include "twinkle/report.h"
