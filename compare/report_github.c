#include "precise.h"

#include "report_parts.h"

#include <stdlib.h>

/* Workflow commands end at a line end and know %, which is escaped. */
static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '%' || (unsigned char)*text < 0x20)
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
        else
            putc(*text, out);
    }
}

static bool is_bad(const struct case_result *result)
{
    return urgency_of(result) == URGENCY_BAD;
}

void report_github(FILE *out, const struct comparison *comparison)
{
    struct listing listing = {.sort = SORT_CHANGE};
    size_t count = 0;
    const struct case_result **cases = list_cases(comparison, &listing, is_bad, &count);
    for (size_t i = 0; cases && i < count; i++) {
        fprintf(out, "::error title=gpubench: %s::", verdict_word(cases[i]));
        print_label(out, comparison, cases[i], print_escaped);
        if (cases[i]->outcome == OUTCOME_JUDGED)
            fprintf(out, ": %+.2f %%25",
                    100.0 * (metric_ratio(cases[i], comparison->settings->metric).value - 1.0));
        fprintf(out, "\n");
    }
    free(cases);
    fprintf(out, "::notice title=gpubench::");
    print_summary(out, comparison);
    fprintf(out, "\n");
}
