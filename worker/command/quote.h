/* SPDX-License-Identifier: MIT */
/* quote - which part of a failure's sentence is the program's own output
 *
 * It may hold what is not to be stored (docs/command.md, Commands with secrets). So a sentence says
 * cause and advice first, then has DT_QUOTES, and ends with the quotation:
 *
 *     dt_fail(DT_FAILED, "the command exited with %d" DT_QUOTES "; its output ends with: %s", code, tail);
 */
#ifndef DT_WORKER_COMMAND_QUOTE_H
#define DT_WORKER_COMMAND_QUOTE_H

#define DT_QUOTES "\xee\x80\x80" /* U+E000, which has no meaning in Unicode */

#endif
