#include "report.h"

#include "race_report.h"
#include "report_parts.h"

void report_comparison(FILE *out, const struct comparison *comparison, enum format format,
                       const struct listing *listing, bool colour)
{
    if (comparison->race)
        report_race_before(out, comparison->race, format);
    if (format == FORMAT_TEXT)
        report_text(out, comparison, listing, colour);
    else if (format == FORMAT_MARKDOWN)
        report_markdown(out, comparison, listing);
    else if (format == FORMAT_GITHUB)
        report_github(out, comparison);
    else if (format == FORMAT_JSON)
        report_json(out, comparison);
    else
        report_csv(out, comparison);
    if (comparison->race)
        report_race_after(out, comparison->race, format);
}
