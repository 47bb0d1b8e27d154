#define _POSIX_C_SOURCE 200809L

#include "report_parts.h"

#include "label.h"

#include <stdlib.h>
#include <string.h>

/* The names of more cases would make no command that a person reads. */
enum { most_names = 4 };

/* Whether a shell's single quotes hold the name, and a terminal shows it. */
static bool can_be_quoted(const char *name)
{
    for (; *name; name++)
        if (*name == '\'' || (unsigned char)*name < 0x20 || *name == 0x7f)
            return false;
    return true;
}

static void print_escaped(FILE *out, const char *name)
{
    for (; *name; name++) {
        if (strchr(".[]{}()*+?|^$\\", *name))
            putc('\\', out);
        putc(*name, out);
    }
}

/* The names of the wanted cases, each once; more than `most_names` are none. */
static size_t find_names(const struct comparison *comparison,
                         bool (*wanted)(const struct case_result *), const char *names[most_names])
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (!wanted(&comparison->results[i]))
            continue;
        const char *name =
            comparison->catalogue->cases[comparison->results[i].case_id].parts[KEY_CASE];
        size_t known = 0;
        while (known < count && strcmp(names[known], name) != 0)
            known++;
        if (known < count)
            continue;
        if (count == most_names || !can_be_quoted(name))
            return 0;
        names[count++] = name;
    }
    return count;
}

/* "-- --filter '^(a|b) '": what the programs' own --filter takes. */
static void print_filter(FILE *out, const struct comparison *comparison,
                         bool (*wanted)(const struct case_result *))
{
    const char *names[most_names];
    size_t count = find_names(comparison, wanted, names);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "|" : count > 1 ? " -- --filter '^(" : " -- --filter '^", out);
        print_escaped(out, names[i]);
    }
    if (count > 0)
        fputs(count > 1 ? ") '" : " '", out);
}

static void print_revision(FILE *out, const struct results *side, const char *program)
{
    uint32_t newest = INTERN_NONE;
    for (size_t i = 0; i < side->count; i++)
        if (side->rows[i].revision != INTERN_NONE)
            newest = side->rows[i].revision;
    fprintf(out, "%s", program);
    if (newest == INTERN_NONE)
        return;
    fputs(" as of revision ", out);
    print_plain(out, intern_text(&side->revisions, newest));
}

static bool is_slower(const struct case_result *result)
{
    return result->outcome == OUTCOME_JUDGED && result->judgement.verdict == VERDICT_SLOWER;
}

void print_next(FILE *out, const struct comparison *comparison)
{
    size_t slower = count_verdicts(comparison, VERDICT_SLOWER);
    size_t open = count_verdicts(comparison, VERDICT_INCONCLUSIVE);
    if (comparison->race || comparison->of_variants || slower + open == 0)
        return;
    fprintf(out,
            "next: race both builds in turns on one card, which tells %s:\n    gpubench-compare "
            "--race OLD NEW",
            slower > 0 ? "a slower program from a slower card or sitting"
                       : "more than a stored baseline can");
    print_filter(out, comparison, slower > 0 ? is_slower : is_inconclusive);
    print_revision(out, comparison->baseline, "\n    (OLD: the program");
    print_revision(out, comparison->current, "; NEW: the program");
    fputs(")\n", out);
}
