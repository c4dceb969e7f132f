#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Would the tests notice a mistake in the engine? Two of tools/mutations.txt, others every day; all of them in a full dose.
[ "${DITTUNE_DOSE:-short}" = full ] && exec "$2/tools/mutate.sh"
exec "$2/tools/mutate.sh" --some 2
