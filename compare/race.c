#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "race.h"

#include "complain.h"
#include "label.h"
#include "race_arguments.h"
#include "race_files.h"
#include "race_look.h"
#include "race_process.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { most_log_bytes = 2000 };

static const char *const side_names[2] = {"OLD", "NEW"};

struct race {
    const struct options *options;
    struct race_files files;
    struct race_arguments arguments;
    struct race_flags flags;
    struct race_standing standing;
    struct race_summary summary;
    bool verifies;     /* each process does; false where both programs can do without */
    char *filter;      /* of the cases that are not decided, or NULL */
    bool said[2];      /* what a failing side wrote was shown */
    int signal_number; /* which ended the race, or 0 */
    double began_s;
    char csv[race_path_capacity];
    char log[race_path_capacity];
    char temporary[race_path_capacity];
};

static bool refuse(const char *format, const char *what, const char *why)
{
    char line[1 << 13];
    snprintf(line, sizeof line, format, what, why);
    complain("%s", line);
    return false;
}

/* The end of what a process wrote, so that its own reason is seen. */
static void show_log(const struct race *race)
{
    char text[most_log_bytes + 1];
    FILE *log = fopen(race->log, "r");
    if (!log)
        return;
    if (fseek(log, -(long)most_log_bytes, SEEK_END) != 0)
        rewind(log);
    size_t size = fread(text, 1, most_log_bytes, log);
    text[size] = '\0';
    fclose(log);
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
        fprintf(stderr, "    ");
        print_plain(stderr, line);
        putc('\n', stderr);
    }
}

static void begin_complaint(const struct race *race, int side, unsigned pair)
{
    fprintf(stderr, "gpubench-compare: ");
    if (pair > 0)
        fprintf(stderr, "pair %u: %s ('", pair, side_names[side]);
    else
        fprintf(stderr, "warm-up: %s ('", side_names[side]);
    print_plain(stderr, race->summary.programs[side]);
    fprintf(stderr, "') ");
}

/* False where the process left nothing to go on with. */
static bool accept_ending(struct race *race, int side, unsigned pair, struct race_ended ended)
{
    if (ended.ending == RACE_INTERRUPTED) {
        race->signal_number = ended.code;
        return false;
    }
    if (ended.ending == RACE_EXITED && (ended.code == 0 || (ended.code == 1 && race->said[side])))
        return true;
    begin_complaint(race, side, pair);
    bool usable = ended.ending == RACE_EXITED && ended.code == 1;
    if (ended.ending == RACE_NOT_STARTED)
        fprintf(stderr, "cannot be started: %s\n", strerror(ended.code));
    else if (ended.ending == RACE_LOST)
        fprintf(stderr, "cannot be waited for: %s\n", strerror(ended.code));
    else if (ended.ending == RACE_TIMED_OUT)
        fprintf(stderr, "did not end within %g s (--timeout) and was stopped\n",
                race->options->timeout_s);
    else if (ended.ending == RACE_CRASHED)
        fprintf(stderr, "was ended by signal %d (%s)\n", ended.code, strsignal(ended.code));
    else if (usable)
        fprintf(stderr, "ended with status 1, some case failed; its messages are shown once:\n");
    else
        fprintf(stderr, "ended with status %d%s\n", ended.code,
                ended.code == 2 ? ", bad usage or no way to measure"
                                : ": is it built on gpubench.h?");
    race->said[side] = true;
    show_log(race);
    return usable;
}

static bool run_side(struct race *race, int side, unsigned pair)
{
    char seed[32];
    char error[race_error_capacity];
    struct race_turn turn = {pair, pair == 0 || race->verifies};
    const char **words =
        race_arguments_words(&race->arguments, race->summary.programs[side], race->csv,
                             race->filter ? race->filter : race->arguments.filter, turn, seed);
    if (!words)
        return refuse("%s%s", "not enough memory", "");
    unlink(race->csv);
    unlink(race->log);
    struct race_command command = {words, race->log, race->temporary, race->options->timeout_s};
    struct race_ended ended = race_run_process(&command);
    free(words);
    race->summary.processes++;
    if (!accept_ending(race, side, pair, ended))
        return false;
    if (race_append_rows(race->csv, &race->files, side, pair, &race->flags, error))
        return true;
    begin_complaint(race, side, pair);
    fputs("cannot be raced: ", stderr);
    print_plain(stderr, error);
    fputs("; is it built on gpubench.h?\n", stderr);
    show_log(race);
    return false;
}

static bool log_names_no_verify(const struct race *race)
{
    static const char option[] = "--no-verify";
    char line[512];
    bool found = false;
    FILE *log = fopen(race->log, "r");
    while (log && !found && fgets(line, sizeof line, log)) {
        const char *word = line + strspn(line, " ");
        size_t size = sizeof option - 1;
        found = strncmp(word, option, size) == 0 && strchr(" \n", word[size]);
    }
    if (log)
        fclose(log);
    return found;
}

/* Whether the program's --help lists --no-verify, which older headers lack. */
static bool can_skip_verifying(struct race *race, int side)
{
    const char *const words[] = {race->summary.programs[side], "--help", NULL};
    struct race_command command = {words, race->log, race->temporary, race->options->timeout_s};
    unlink(race->log);
    struct race_ended ended = race_run_process(&command);
    if (ended.ending == RACE_INTERRUPTED)
        race->signal_number = ended.code;
    return ended.ending == RACE_EXITED && ended.code == 0 && log_names_no_verify(race);
}

/* A process of each side before the first pair: what the first one of all finds (a
 * card that is cool, files that are in no cache) is not the first pair's. It verifies
 * each case; the pairs do so only where one of the sides cannot do without, as both
 * have to treat the card alike. */
static bool warm_up(struct race *race)
{
    if (!run_side(race, 0, 0) || !run_side(race, 1, 0))
        return false;
    race->verifies = !can_skip_verifying(race, 0) || !can_skip_verifying(race, 1);
    race->summary.verified_once = !race->verifies;
    return race->signal_number == 0;
}

/* The sides take turns in going first. */
static bool run_pair(struct race *race, unsigned pair)
{
    int first = pair % 2 == 0;
    return run_side(race, first, pair) && run_side(race, !first, pair);
}

static void say_progress(const struct race *race, size_t pairs)
{
    const struct race_counts *counts = &race->standing.counts;
    fprintf(stderr,
            "gpubench-compare: race, %zu pairs: %zu slower, %zu faster, %zu same, %zu open of %zu "
            "cases\n",
            pairs, counts->slower, counts->faster, counts->same, counts->open,
            race->standing.count);
}

/* From now on only the cases that are open are measured; where their names are too
 * long for one argument, as many as the user asked for, and the rest is ignored. */
static bool narrow(struct race *race)
{
    struct race_keys keys = {0};
    bool complete = race_open_keys(&race->standing, &keys);
    char *filter = complete ? race_filter(&keys) : NULL;
    race_keys_free(&keys);
    if (filter) {
        free(race->filter);
        race->filter = filter;
    }
    return complete || refuse("%s%s", "not enough memory", "");
}

static bool look(struct race *race, size_t at)
{
    char error[results_error_capacity];
    if (!race_take_rows(&race->standing, &race->files, error) ||
        !race_look(&race->standing, at, error))
        return refuse("cannot judge: %s%s", error, "");
    return true;
}

/* What no further pair could mend is found after the first one. */
static bool can_go_on(struct race *race)
{
    char error[results_error_capacity];
    if (!race_take_rows(&race->standing, &race->files, error))
        return refuse("cannot judge: %s%s", error, "");
    const char *other = race_other_card(&race->standing);
    if (other && !race->options->settings.ignore_device)
        return refuse(
            "cannot judge: the two programs ran on different cards, uuid '%s' is one of them; "
            "choose one by --device behind '--', or CUDA_VISIBLE_DEVICES (--ignore-device races "
            "all the same)%s",
            other, "");
    return true;
}

static bool is_out_of_time(struct race *race)
{
    race->summary.out_of_time = race_now_s() - race->began_s >= race->options->race_s;
    return race->summary.out_of_time;
}

/* False after a message; else the standing tells what was found. Where time runs out before a look,
 * it is taken of the pairs that there are: its share of the false alarms was set aside for more. */
static bool run_looks(struct race *race)
{
    unsigned pair = 0;
    if (!warm_up(race))
        return false;
    for (size_t at = 0; at < race_looks; at++) {
        while (pair < race_pairs_at[at] && !(pair > 0 && is_out_of_time(race))) {
            if (!run_pair(race, ++pair) || (pair == 1 && !can_go_on(race)))
                return false;
            if (pair == 1 && !race_has_common(&race->standing))
                return true; /* finish says why nothing can be judged */
        }
        if (pair == race->summary.pairs)
            return true; /* time ran out just after a look */
        race->summary.pairs = pair;
        if (!look(race, at))
            return false;
        say_progress(race, pair);
        if (race->standing.counts.open == 0 || race->summary.out_of_time)
            return true;
        if (!narrow(race))
            return false;
    }
    race->summary.all_looks = true;
    return true;
}

/* --only: the first processes measure no more than these either. */
static bool take_only(struct race *race)
{
    struct race_keys *only = &race->standing.only;
    const char *path = race->options->only;
    if (!path)
        return true;
    errno = 0;
    if (!race_keys_read(only, path))
        return refuse("--only: '%s': %s", path, errno ? strerror(errno) : "not enough memory");
    if (only->count == 0)
        return refuse("--only: '%s' names no case%s", path, "");
    race->filter = race_filter(only);
    return true;
}

static bool prepare(struct race *race)
{
    const struct options *options = race->options;
    struct race_summary *summary = &race->summary;
    char error[race_error_capacity];
    struct stat programs[2];
    summary->programs[0] = options->baseline.items[0];
    summary->programs[1] = options->current.items[0];
    for (int side = 0; side < 2; side++) {
        if (stat(summary->programs[side], &programs[side]) != 0)
            return refuse("--race: '%s': %s", summary->programs[side], strerror(errno));
        if (!S_ISREG(programs[side].st_mode) || access(summary->programs[side], X_OK) != 0)
            return refuse("--race: '%s' is no program%s", summary->programs[side], "");
    }
    summary->same_file =
        programs[0].st_dev == programs[1].st_dev && programs[0].st_ino == programs[1].st_ino;
    if (!race_arguments_take(&race->arguments, &options->arguments, error) ||
        !race_files_make(&race->files, options->output, error))
        return refuse("%s%s", error, "");
    race_path(race->csv, race->files.folder, "rows.csv");
    race_path(race->log, race->files.folder, "log");
    race_path(race->temporary, race->files.folder, "tmp");
    return take_only(race);
}

static void summarize(struct race *race)
{
    struct race_summary *summary = &race->summary;
    summary->first_seed = race->arguments.seed;
    summary->seconds = race_now_s() - race->began_s;
    summary->place_effect = race_place_effect(&race->standing);
    summary->pairs_outside = race->standing.counts.pairs_outside;
    summary->open = race->standing.counts.open;
    summary->flags = &race->flags;
    summary->kept = race->options->output;
    race->standing.comparison.race = summary;
}

int run_race(const struct options *options, const struct settings *settings,
             int (*finish)(const struct options *, const struct comparison *))
{
    struct race race = {.options = options, .began_s = race_now_s()};
    sigset_t before;
    int status = EXIT_CANNOT_JUDGE;
    race_hold_signals(&before);
    race_standing_start(&race.standing, settings);
    bool complete = isnan(race.began_s) ? refuse("%s%s", "the system's clock cannot be read", "")
                                   : prepare(&race) && run_looks(&race);
    race_files_remove(&race.files);
    /* A signal often comes twice (timeout sends it to the program, then to its group): the
     * second must not end the report of what the first left. */
    if (!race.signal_number)
        race_release_signals(&before);
    if (!complete && race.signal_number && race.summary.pairs > 0) {
        fprintf(stderr, "gpubench-compare: the race was ended by signal %d (%s); what %zu pairs told:\n",
                race.signal_number, strsignal(race.signal_number), race.summary.pairs);
        complete = true;
    }
    if (complete) {
        struct options to_output = *options;
        to_output.output = NULL;
        summarize(&race);
        status = finish(&to_output, &race.standing.comparison);
    }
    race_standing_free(&race.standing);
    race_arguments_free(&race.arguments);
    free(race.filter);
    if (race.signal_number) {
        fflush(NULL); /* a signal's end flushes nothing */
        race_release_signals(&before);
        raise(race.signal_number);
    }
    return status;
}
