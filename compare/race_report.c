#include "precise.h"

#include "race_report.h"

#include "label.h"
#include "report_parts.h"

#include <inttypes.h>
#include <math.h>

/* CSV and JSON are for programs: what is said beside it goes to standard error. */
struct place {
    FILE *out;
    const char *prefix;
    const char *end;
    void (*print)(FILE *, const char *);
};

static struct place place_of(FILE *out, enum format format)
{
    if (format == FORMAT_CSV || format == FORMAT_JSON)
        return (struct place){stderr, "gpubench-compare: ", "\n", print_plain};
    if (format == FORMAT_MARKDOWN)
        return (struct place){out, "", "\n\n", print_markdown};
    return (struct place){out, "", "\n", print_plain};
}

void report_race_before(FILE *out, const struct race_summary *race, enum format format)
{
    struct place place = place_of(out, format);
    fprintf(place.out, "%srace of NEW '", place.prefix);
    place.print(place.out, race->programs[1]);
    fprintf(place.out, "' against OLD '");
    place.print(place.out, race->programs[0]);
    fprintf(place.out,
            "': %zu pairs in alternating order behind a warm-up of both, seeds %" PRIu64
            " to %" PRIu64 ", %zu processes, %.0f s%s",
            race->pairs, race->first_seed, race->first_seed + race->pairs - 1, race->processes,
            race->seconds, place.end);
    if (!race->verified_once)
        fprintf(place.out,
                "%severy process verifies its cases: not both programs have --no-verify%s",
                place.prefix, place.end);
    if (race->same_file)
        fprintf(place.out, "%sboth are the same file: whatever is found is a false alarm%s",
                place.prefix, place.end);
}

/* A flag on one side only is a hint why that side is slower, or not to be trusted. */
static void print_flags(struct place place, const struct race_flags *flags)
{
    static const char *const sides[2] = {"OLD", "NEW"};
    for (size_t i = 0; i < flags->count; i++) {
        const struct race_flag *flag = &flags->items[i];
        if (flag->rows[0] > 0 && flag->rows[1] > 0)
            continue;
        int side = flag->rows[0] == 0;
        fprintf(place.out, "%swarning: flag '", place.prefix);
        place.print(place.out, flag->name);
        fprintf(place.out,
                "' on one side only: in %zu row%s of %s, none of %s; the first is of case ",
                flag->rows[side], flag->rows[side] == 1 ? "" : "s", sides[side], sides[!side]);
        place.print(place.out, flag->first_case);
        fprintf(place.out, "%s", place.end);
    }
}

void report_race_after(FILE *out, const struct race_summary *race, enum format format)
{
    struct place place = place_of(out, format);
    print_flags(place, race->flags);
    fprintf(place.out,
            "%sthe first process of a pair takes %+.2f %% (median over the cases), which cancels%s",
            place.prefix, 100.0 * expm1(race->place_effect), place.end);
    if (race->pairs_outside > 0)
        fprintf(place.out,
                "%s%zu value%s of a pair left out, far from the other pairs of the case%s",
                place.prefix, race->pairs_outside, race->pairs_outside == 1 ? "" : "s", place.end);
    if (race->open > 0 && race->all_looks)
        fprintf(place.out,
                "%s%zu case%s stayed open after all %zu pairs: a wider --margin, or a card that "
                "nobody else uses%s",
                place.prefix, race->open, race->open == 1 ? "" : "s", race->pairs, place.end);
    if (race->open > 0 && race->out_of_time)
        fprintf(place.out, "%s%zu case%s open after %zu pair%s, when --race-seconds ran out%s", place.prefix,
                race->open, race->open == 1 ? " was" : "s were", race->pairs, race->pairs == 1 ? "" : "s",
                place.end);
    if (race->kept) {
        fprintf(place.out, "%srows of both sides: ", place.prefix);
        place.print(place.out, race->kept);
        fprintf(place.out, "/old.csv and new.csv%s", place.end);
    }
}
