#!/bin/bash
# SPDX-License-Identifier: MIT
# A session changes by its records, in tuner/session/apply.c: elsewhere what changes one does not compile.
set -euo pipefail
source=$2
failed=0

compiles() # body of a function that has a session that runs, and a record
{
    printf '#include "tuner/session/tuning.h"\nvoid planted(struct dt_tuning *tuning, struct dt_log_record *record);\n%s\n{\n    %s\n}\n' \
        'void planted(struct dt_tuning *tuning, struct dt_log_record *record)' "$1" |
        "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$source" -fsyntax-only -x c - 2>/dev/null
}
accept() { compiles "$1" || { echo "refused: $1"; failed=1; }; }
refuse() { compiles "$1" && { echo "compiles: $1"; failed=1; } || true; }

accept 'record->run.value = tuning->session->count;'
accept '(void)!dt_log_add(tuning->log, record);'
refuse '(void)record; tuning->session->count = 1;'
refuse '(void)record; tuning->session->finals.best = 0;'
refuse '(void)record; tuning->session->trials[0].undone = true;'
refuse '(void)!dt_session_apply(tuning->session, record);'
refuse '(void)record; struct dt_session *session = tuning->session; session->verdict = DT_VERDICT_FASTER;'
refuse '(void)record; dt_session_fini(tuning->session);'
refuse '(void)record; struct dt_replay replay; replay.session->ended = true;'
exit $failed
