/* SPDX-License-Identifier: MIT */
/* screen - a few lines at the bottom of a terminal, redrawn in place; other lines scroll above
 * them. On standard error
 *
 *     if (dt_screen_open())
 *         dt_screen_draw("15/60 s\nmeasuring");
 *     dt_screen_line("trial 3 failed");
 *     dt_screen_close();
 *
 * A program has one. The cursor stays visible and no mode of the terminal is changed, so that a
 * program that is killed leaves it in order. The lines are gone while the program is stopped by
 * Ctrl-Z, and are not drawn in the background.
 */
#ifndef DT_TUNER_CLI_LIVE_SCREEN_H
#define DT_TUNER_CLI_LIVE_SCREEN_H

#include <stdbool.h>

/* False, and nothing is ever drawn: standard error is no terminal, or one that cannot move
 * the cursor (TERM=dumb). */
bool dt_screen_open(void);
void dt_screen_close(void); /* the lines are erased */

/* Replaces the lines; each is cut to the width, and there are no more than fit the height. */
void dt_screen_draw(const char *lines);

/* The terminal's size has changed, or the program was continued, since the
 * last drawing: draw now. */
bool dt_screen_stale(void);

/* Writes one line that stays, above the others; without a screen just the line.
 * It has no line feed. */
void dt_screen_line(const char *line);

/* For signal handlers that end the program. */
void dt_screen_wipe(void);

/* The terminal shows UTF-8, by the locale's variables. */
bool dt_screen_utf8(void);

#endif
