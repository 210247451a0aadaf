// SPDX-License-Identifier: GPL-3.0-or-later
// The headers that most tests without a window include, compiled once. Every file still includes its own headers.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "test.h"
