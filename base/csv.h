/* SPDX-License-Identifier: MIT */
/* csv - fields of RFC 4180 */
#ifndef DT_BASE_CSV_H
#define DT_BASE_CSV_H

#include "base/text.h"

/* Text in quotes. What is not shown on a terminal is escaped (base/text.h); text that a spreadsheet would take for a
 * formula begins with an apostrophe (OWASP, "CSV injection"). */
void dt_csv_text(const char *text, struct dt_text *out);

#endif
