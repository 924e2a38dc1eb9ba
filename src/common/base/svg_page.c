/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/svg_page.h"

void svg_begin(FILE *out, double width, double height)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            width, height, width, height);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void svg_escape(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else
            fputc(*text, out);
}

void svg_text(FILE *out, double x, double y, int size, const char *anchor,
              const char *text)
{
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" "
            "text-anchor=\"%s\">",
            x, y, size, anchor);
    svg_escape(out, text);
    fputs("</text>\n", out);
}

void svg_rectangle(FILE *out, double x, double y, double width, double height,
                   const char *colour)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "fill=\"%s\"/>\n",
            x, y, width, height, colour);
}
