// SPDX-License-Identifier: GPL-3.0-or-later
// The headers that most architectures include, compiled once. Every file still includes its own headers.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/step/step.h"
