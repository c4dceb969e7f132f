/* SPDX-License-Identifier: MIT */
/* Included before each source that clang-tidy reads: dt_fail returns the code it is given. Its
 * analyzer looks at one source at a time and would take every failure for a possible success, with
 * outputs that are not set. */
#include "base/status.h"

#define dt_fail(code, ...) ((void)(dt_fail)(code, __VA_ARGS__), (code))
