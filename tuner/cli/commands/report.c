/* SPDX-License-Identifier: MIT */
/* A session, or two, as a page; nothing is measured. */
#include "base/figures.h"
#include "base/replace.h"
#include "tuner/cli/page/page.h"
#include "tuner/cli/print.h"
#include "tuner/session/session.h"

#include <string.h>

#define USUAL "report.html"

static dt_status write_page(const struct dt_options *options, const struct dt_page_format *format,
                            const struct dt_page pages[], int n)
{
    dt_auto_text text = {0};
    const char *output = options->run.output;
    format->write(pages, n, &text);
    if (output == NULL && strcmp(format->name, "html") == 0)
        output = USUAL;
    if (output == NULL || strcmp(output, "-") == 0)
        return dt_print_exact(&text);
    dt_status status = dt_replace_text(output, &text);
    if (status == DT_OK && !options->print.quiet)
        dt_print_note("wrote %s (%s)", output, dt_figure_bytes_of((int64_t)text.size).text);
    return status;
}

dt_status dt_command_report(const struct dt_options *options)
{
    const char *name = options->print.format != NULL ? options->print.format
                       : options->print.json         ? "json"
                                                     : "html";
    const struct dt_page_format *format = dt_page_format(name);
    struct dt_page pages[2] = {{.usual = true}, {.usual = true}};
    dt_status status = DT_OK;
    int given = options->words.rest_count, n = given > 0 ? given : 1;
    if (format == NULL)
        return dt_fail(DT_EUSAGE, "--format '%s' is not html, md, recipe, csv or json", name);
    for (int i = 0; i < n && status == DT_OK; i++) {
        status =
            dt_page_open(options->store, options->db == NULL, options->words.rest[i], &pages[i]);
        if (status == DT_OK)
            status = dt_page_need(&pages[i]);
    }
    if (status == DT_OK)
        status = write_page(options, format, pages, n);
    for (int i = 0; i < n; i++)
        dt_page_close(&pages[i]);
    return status;
}
