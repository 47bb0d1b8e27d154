#include "report.h"

#include "report_parts.h"

void report_comparison(FILE *out, const struct comparison *comparison, enum format format,
                       const struct listing *listing, bool colour)
{
    if (format == FORMAT_TEXT)
        report_text(out, comparison, listing, colour);
    else if (format == FORMAT_MARKDOWN)
        report_markdown(out, comparison, listing);
    else if (format == FORMAT_GITHUB)
        report_github(out, comparison);
    else
        report_csv(out, comparison);
}
