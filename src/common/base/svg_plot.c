/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/svg_plot.h"

#include <math.h>
#include <string.h>

#include "common/base/units.h"

/* Where VALUE lies on AXIS, 0 to 1. */
static double axis_place(const struct svg_axis *axis, double value)
{
    if (!axis->log)
        return (value - axis->low) / (axis->high - axis->low);
    return log(fmax(value, axis->low * 1e-9) / axis->low) /
           log(axis->high / axis->low);
}

static double pixel_x(const struct svg_panel *p, double across)
{
    return p->x + p->width * axis_place(&p->across, across);
}

static double pixel_y(const struct svg_panel *p, double up)
{
    return p->y + p->height * (1 - axis_place(&p->up, up));
}

static void label_bytes(double value, char *text, size_t size)
{
    units_format_bytes((uint64_t)value, text, size);
    char *zeros = strstr(text, ".00");
    if (zeros)
        memmove(zeros, zeros + 3, strlen(zeros + 3) + 1);
}

static void label_us(double value, char *text, size_t size)
{
    if (value < 1e3)
        snprintf(text, size, "%.6g us", value);
    else if (value < 1e6)
        snprintf(text, size, "%.6g ms", value / 1e3);
    else
        snprintf(text, size, "%.6g s", value / 1e6);
}

static void label_plain(double value, char *text, size_t size)
{
    snprintf(text, size, "%.6g", value);
}

static void (*const labels[])(double, char *, size_t) = {
    [SVG_PLAIN] = label_plain,
    [SVG_TWOS] = label_plain,
    [SVG_BYTES] = label_bytes,
    [SVG_US] = label_us,
};

static void draw_tick(const struct svg_panel *p, bool across, double value)
{
    const struct svg_axis *axis = across ? &p->across : &p->up;
    double at = across ? pixel_x(p, value) : pixel_y(p, value);
    char text[32];

    labels[axis->unit](value, text, sizeof text);
    if (across) {
        fprintf(p->out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", at,
                p->y, p->y + p->height);
        svg_text(p->out, at, p->y + p->height + 12, 9, "middle", text);
    } else {
        fprintf(p->out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", p->x,
                at, p->x + p->width);
        svg_text(p->out, p->x - 4, at + 3, 9, "end", text);
    }
}

/* 1, 2 or 5 times a power of ten: about five on the axis. */
static double linear_step(const struct svg_axis *axis)
{
    double rough = (axis->high - axis->low) / 5;
    double ten = pow(10, floor(log10(rough)));
    double times = rough / ten;

    return ten * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static const double bases[] = {
    [SVG_PLAIN] = 10,
    [SVG_TWOS] = 2,
    [SVG_BYTES] = 32,
    [SVG_US] = 10,
};

/* At powers of a base, of which an axis over many has each second, or third. */
static void log_ticks(const struct svg_panel *p, bool across)
{
    const struct svg_axis *axis = across ? &p->across : &p->up;
    double base = bases[axis->unit];
    double first = ceil(log(axis->low) / log(base) - 1e-9);
    double last = floor(log(axis->high * 1.0001) / log(base));
    double apart = 1 + floor((last - first) / 20);

    for (double power = first; power <= last; power += apart)
        draw_tick(p, across, pow(base, power));
}

static void draw_ticks(const struct svg_panel *p, bool across)
{
    const struct svg_axis *axis = across ? &p->across : &p->up;

    if (!isfinite(axis->low) || !isfinite(axis->high))
        return;
    if (axis->log) {
        log_ticks(p, across);
        return;
    }
    double step = linear_step(axis);
    for (double i = ceil(axis->low / step); i * step <= axis->high; i++)
        draw_tick(p, across, i * step);
}

void svg_panel_draw(const struct svg_panel *p)
{
    draw_ticks(p, true);
    draw_ticks(p, false);
    fprintf(p->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "fill=\"none\" stroke=\"#444\"/>\n",
            p->x, p->y, p->width, p->height);
    svg_text(p->out, p->x, p->y - 6, 11, "start", p->title);
    svg_text(p->out, p->x + p->width, p->y - 6, 9, "end", p->up.label);
    svg_text(p->out, p->x + p->width, p->y + p->height + 24, 9, "end",
             p->across.label);
}

void svg_shade(const struct svg_panel *p, double from, double to)
{
    double left = pixel_x(p, fmax(from, p->across.low));
    double right = pixel_x(p, fmin(to, p->across.high));

    if (right > left)
        fprintf(p->out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"#eee\"/>\n",
                left, p->y, right - left, p->height);
}

static bool is_inside(const struct svg_panel *p, double x, double y)
{
    return x >= p->x - 0.5 && x <= p->x + p->width + 0.5 && y >= p->y - 0.5 &&
           y <= p->y + p->height + 0.5;
}

/* Shapes that differ without colour, about 5 pixels wide. */
static const char *const shapes[] = {
    "M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z",
    "M-2.3 -2.3h4.6v4.6h-4.6z",
    "M0 -3L2.9 2.2H-2.9z",
    "M0 -3.2L3.2 0L0 3.2L-3.2 0z",
    "M0 3L2.9 -2.2H-2.9z",
    "M-1.2 -3h2.4v1.8h1.8v2.4h-1.8v1.8h-2.4v-1.8h-1.8v-2.4h1.8z",
};

void svg_shape(FILE *out, double x, double y, const char *colour,
               uint32_t shape, bool hollow)
{
    fprintf(out,
            "<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"%s\" "
            "stroke=\"%s\"/>\n",
            x, y, shapes[shape % (sizeof shapes / sizeof *shapes)],
            hollow ? "white" : colour, colour);
}

void svg_point(const struct svg_panel *p, double across, double up,
               const char *colour, uint32_t shape, bool hollow)
{
    double x = pixel_x(p, across), y = pixel_y(p, up);

    y = fmin(fmax(y, p->y), p->y + p->height);
    if (is_inside(p, x, y))
        svg_shape(p->out, x, y, colour, shape, hollow);
}

void svg_line(const struct svg_panel *p, const double *across, const double *up,
              uint32_t count, const char *colour, bool dashed)
{
    bool drawing = false;

    fputs("<path d=\"", p->out);
    for (uint32_t i = 0; i < count; i++) {
        double x = pixel_x(p, across[i]), y = pixel_y(p, up[i]);

        if (is_inside(p, x, y))
            fprintf(p->out, "%c%.1f %.1f", drawing ? 'L' : 'M', x, y);
        drawing = is_inside(p, x, y);
    }
    fprintf(p->out, "\" fill=\"none\" stroke=\"%s\"%s/>\n", colour,
            dashed ? " stroke-dasharray=\"4 3\"" : "");
}
