#include "report.h"

#include "report_parts.h"

void report_comparison(FILE *out, const struct comparison *comparison, enum format format, bool colour)
{
    if (format == FORMAT_TEXT)
        report_text(out, comparison, colour);
    else if (format == FORMAT_MARKDOWN)
        report_markdown(out, comparison);
    else
        report_csv(out, comparison);
}
