/* SPDX-License-Identifier: MIT */
#include "base/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct dt_unit times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
static const struct dt_unit sizes[] = {
    {"GiB", DT_GIB}, {"MiB", 1048576.}, {"KiB", 1024.}, {"bytes", 1}};

static struct dt_unit largest_unit(const struct dt_unit units[], int n, double amount)
{
    int i = 0;
    while (i + 1 < n && !(amount >= units[i].size))
        i++;
    return units[i];
}

struct dt_unit dt_figure_time_unit(double seconds)
{
    return largest_unit(times, sizeof times / sizeof times[0], fabs(seconds));
}

struct dt_unit dt_figure_bytes_unit(double bytes)
{
    return largest_unit(sizes, sizeof sizes / sizeof sizes[0], bytes);
}

void dt_figure_add(double value, struct dt_text *out)
{
    if (!isfinite(value))
        dt_text_add(out, "-");
    else if (fabs(value) >= 1000)
        dt_text_add(out, "%.0f", value);
    else if (fabs(value) >= 1e-4)
        dt_text_add(out, "%.4g", value);
    else
        dt_text_add(out, value == 0 ? "0" : "%.7f", value);
}

void dt_figure_time(double seconds, struct dt_text *out)
{
    struct dt_unit unit = dt_figure_time_unit(seconds);
    dt_figure_add(seconds / unit.size, out);
    if (isfinite(seconds))
        dt_text_add(out, " %s", unit.name);
}

static struct dt_figure figure_of(void (*add)(double seconds, struct dt_text *out), double seconds)
{
    struct dt_figure figure;
    dt_auto_text text = {0};
    add(seconds, &text);
    snprintf(figure.text, sizeof figure.text, "%s", dt_text_at(&text));
    return figure;
}

struct dt_figure dt_figure_of(double seconds)
{
    return figure_of(dt_figure_time, seconds);
}

struct dt_figure dt_figure_number(double value)
{
    return figure_of(dt_figure_add, value);
}

struct dt_figure dt_figure_span_of(double seconds)
{
    return figure_of(dt_figure_span, seconds);
}

struct dt_figure dt_figure_exact(int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}};
    struct dt_figure figure;
    int i = 0;
    while (i < 2 && ns % units[i].ns != 0)
        i++;
    int64_t rest = ns % units[i].ns;
    int size = snprintf(figure.text, sizeof figure.text, "%lld", (long long)(ns / units[i].ns));
    if (rest != 0)
        size += snprintf(figure.text + size, sizeof figure.text - (size_t)size, ".%03d", (int)rest);
    snprintf(figure.text + size, sizeof figure.text - (size_t)size, "%s", units[i].name);
    return figure;
}

bool dt_figure_tells(double low, double high)
{
    return isfinite(low) && isfinite(high) && high <= DT_FIGURE_WIDEST * low;
}

void dt_figure_range(double low, double high, struct dt_text *out)
{
    if (!isfinite(low) || !isfinite(high))
        dt_text_add(out, "not known");
    else if (dt_figure_tells(low, high))
        dt_text_add(out, "%.3f to %.3f", low, high);
    else if (low >= 1)
        dt_text_add(out, "at least %.3f", low);
    else if (high <= 1)
        dt_text_add(out, "at most %.3f", high);
    else
        dt_text_add(out, "not decided");
}

void dt_figure_ratio(double ratio, double low, double high, struct dt_text *out)
{
    dt_text_add(out, "%.3f [", ratio);
    if (dt_figure_tells(low, high))
        dt_text_add(out, "%.3f, %.3f", low, high);
    else if (isfinite(low) && isfinite(high))
        dt_figure_range(low, high, out);
    else
        dt_text_add(out, "-, -");
    dt_text_add(out, "]");
}

void dt_figure_estimate(double seconds, double low, double high, struct dt_text *out)
{
    struct dt_unit unit = dt_figure_time_unit(seconds);
    dt_figure_time(seconds, out);
    if (!dt_figure_tells(low, high))
        return;
    dt_text_add(out, " [");
    dt_figure_add(low / unit.size, out);
    dt_text_add(out, ", ");
    dt_figure_add(high / unit.size, out);
    dt_text_add(out, "]");
}

const char *dt_figure_metric(const char *objective)
{
    return objective != NULL && strncmp(objective, "max:", 4) == 0 ? objective + 4 : NULL;
}

void dt_figure_value(const char *metric, double seconds, double low, double high,
                     struct dt_text *out)
{
    if (metric == NULL) {
        dt_figure_estimate(seconds, low, high, out);
        return;
    }
    dt_figure_add(1 / seconds, out);
    dt_text_add(out, " %s", metric);
    if (!dt_figure_tells(low, high))
        return;
    dt_text_add(out, " [");
    dt_figure_add(1 / high, out);
    dt_text_add(out, ", ");
    dt_figure_add(1 / low, out);
    dt_text_add(out, "]");
}

struct dt_figure dt_figure_percent(double share)
{
    struct dt_figure figure;
    double percent = 100 * share;
    snprintf(figure.text, sizeof figure.text, fabs(percent) < 99.5 ? "%.2g %%" : "%.0f %%",
             percent);
    return figure;
}

struct dt_figure dt_figure_bytes_of(int64_t bytes)
{
    struct dt_unit unit = dt_figure_bytes_unit((double)bytes);
    double value = (double)bytes / unit.size;
    struct dt_figure figure;
    snprintf(figure.text, sizeof figure.text,
             value >= 100 || unit.size <= 1 ? "%.0f %s" : "%.3g %s", value, unit.name);
    return figure;
}

void dt_figure_bytes(int64_t bytes, struct dt_text *out)
{
    dt_text_add(out, "%s", dt_figure_bytes_of(bytes).text);
}

void dt_figure_span(double seconds, struct dt_text *out)
{
    if (seconds < 120)
        dt_text_add(out, "%.0f s", ceil(fmax(seconds, 0)));
    else if (seconds < 600 && fmod(ceil(seconds), 60) > 0)
        dt_text_add(out, "%.0f min %.0f s", floor(ceil(seconds) / 60), fmod(ceil(seconds), 60));
    else if (seconds < 7200)
        dt_text_add(out, "%.0f min", ceil(seconds / 60));
    else
        dt_text_add(out, "%.0f h %02.0f min", floor(seconds / 3600),
                    floor(fmod(seconds, 3600) / 60));
}

static struct dt_figure date_of(int64_t wall_ns, const char *format)
{
    struct dt_figure date = {""};
    struct tm utc;
    time_t seconds = (time_t)(wall_ns / 1000000000);
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(date.text, sizeof date.text, format, &utc) == 0)
        date.text[0] = '\0';
    return date;
}

struct dt_figure dt_figure_day(int64_t wall_ns)
{
    return date_of(wall_ns, "%Y-%m-%d");
}

struct dt_figure dt_figure_minute(int64_t wall_ns)
{
    return date_of(wall_ns, "%Y-%m-%d %H:%M");
}

struct dt_figure dt_figure_stamp(int64_t wall_ns)
{
    return date_of(wall_ns, "%Y%m%dT%H%M%SZ");
}
