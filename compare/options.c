#include "precise.h"

#include "options.h"

#include "number.h"
#include "other_hosts.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum option {
    OPTION_BASELINE,
    OPTION_CURRENT,
    OPTION_VARIANTS,
    OPTION_SELF,
    OPTION_CHECK,
    OPTION_RACE,
    OPTION_CARDS,
    OPTION_HISTORY,
    OPTION_KERNELS,
    OPTION_MARGIN,
    OPTION_CONFIDENCE,
    OPTION_FALSE_ALARMS,
    OPTION_THRESHOLD,
    OPTION_METRIC,
    OPTION_FILTER,
    OPTION_FORMAT,
    OPTION_SORT,
    OPTION_LIMIT,
    OPTION_ALL,
    OPTION_OUTPUT,
    OPTION_VERDICTS,
    OPTION_ONLY,
    OPTION_TIMEOUT,
    OPTION_RACE_SECONDS,
    OPTION_SUBSET,
    OPTION_HOST_PARAMS,
    OPTION_OLDEST,
    OPTION_IGNORE_DEVICE,
    OPTION_KEEP_CONSTANT,
    OPTION_SCREEN,
    OPTION_HELP,
    OPTIONS
};

/* So that markdown stays below the 64 KiB that a comment on GitHub may have. */
enum { most_in_comment = 60 };

enum takes { TAKES_NOTHING, TAKES_VALUE, TAKES_FILES };

static const struct {
    const char *name;
    enum takes takes;
} known[OPTIONS] = {
    [OPTION_BASELINE] = {"--baseline", TAKES_FILES},
    [OPTION_CURRENT] = {"--current", TAKES_FILES},
    [OPTION_VARIANTS] = {"--variants", TAKES_FILES},
    [OPTION_SELF] = {"--self", TAKES_FILES},
    [OPTION_CHECK] = {"--check", TAKES_FILES},
    [OPTION_RACE] = {"--race", TAKES_FILES},
    [OPTION_CARDS] = {"--cards", TAKES_FILES},
    [OPTION_HISTORY] = {"--history", TAKES_FILES},
    [OPTION_KERNELS] = {"--kernels", TAKES_FILES},
    [OPTION_MARGIN] = {"--margin", TAKES_VALUE},
    [OPTION_CONFIDENCE] = {"--confidence", TAKES_VALUE},
    [OPTION_FALSE_ALARMS] = {"--false-alarms", TAKES_VALUE},
    [OPTION_THRESHOLD] = {"--threshold", TAKES_VALUE},
    [OPTION_SCREEN] = {"--screen", TAKES_VALUE},
    [OPTION_METRIC] = {"--metric", TAKES_VALUE},
    [OPTION_FILTER] = {"--filter", TAKES_VALUE},
    [OPTION_FORMAT] = {"--format", TAKES_VALUE},
    [OPTION_SORT] = {"--sort", TAKES_VALUE},
    [OPTION_LIMIT] = {"--limit", TAKES_VALUE},
    [OPTION_ALL] = {"--all", TAKES_NOTHING},
    [OPTION_OUTPUT] = {"--output", TAKES_VALUE},
    [OPTION_VERDICTS] = {"--verdicts", TAKES_VALUE},
    [OPTION_ONLY] = {"--only", TAKES_VALUE},
    [OPTION_TIMEOUT] = {"--timeout", TAKES_VALUE},
    [OPTION_RACE_SECONDS] = {"--race-seconds", TAKES_VALUE},
    [OPTION_HOST_PARAMS] = {"--host-params", TAKES_VALUE},
    [OPTION_SUBSET] = {"--subset", TAKES_NOTHING},
    [OPTION_OLDEST] = {"--oldest", TAKES_NOTHING},
    [OPTION_IGNORE_DEVICE] = {"--ignore-device", TAKES_NOTHING},
    [OPTION_KEEP_CONSTANT] = {"--keep-constant", TAKES_NOTHING},
    [OPTION_HELP] = {"--help", TAKES_NOTHING},
};

/* The words of the command line, and what was made of them so far. */
struct parsing {
    struct options *options;
    const char *const *argv;
    int argc;
    int next;
    bool seen[OPTIONS];
    int files;
    char *error;
};

static bool fail(struct parsing *parsing, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parsing->error, options_error_capacity, format, arguments);
    va_end(arguments);
    return false;
}

/* Finds the option in "--name" or "--name=value"; *value is NULL without "=". */
static enum option find_option(const char *word, const char **value)
{
    *value = strchr(word, '=');
    size_t length = *value ? (size_t)(*value - word) : strlen(word);
    if (*value)
        (*value)++;
    if (strcmp(word, "-h") == 0)
        return OPTION_HELP;
    for (int option = 0; option < OPTIONS; option++)
        if (strlen(known[option].name) == length && strncmp(known[option].name, word, length) == 0)
            return (enum option)option;
    return OPTIONS;
}

/* "-" alone is standard input. */
static bool is_file(const char *word)
{
    return word[0] != '-' || word[1] == '\0';
}

static bool take_files(struct parsing *parsing, enum option option, struct paths *out)
{
    int first = parsing->next;
    while (parsing->next < parsing->argc && is_file(parsing->argv[parsing->next]))
        parsing->next++;
    *out = (struct paths){parsing->argv + first, (size_t)(parsing->next - first)};
    return out->count > 0 || fail(parsing, "%s needs at least one file", known[option].name);
}

/* A percentage between the two, given as a plain number. */
static bool take_percent(struct parsing *parsing, enum option option, const char *text, double from, double to,
                         double *out)
{
    double value = 0.0;
    if (!parse_decimal(text, &value) || value < from || value > to)
        return fail(parsing, "%s: '%.100s' is not a number of percent from %g to %g", known[option].name, text,
                    from, to);
    *out = value / 100.0;
    return true;
}

static bool take_seconds(struct parsing *parsing, enum option option, const char *text, double *out)
{
    return (parse_decimal(text, out) && *out > 0.0 && *out <= 1e6) ||
           fail(parsing, "%s: '%.100s' is not a number of seconds above 0 and up to 1e6",
                known[option].name, text);
}

static bool take_format(struct parsing *parsing, const char *text)
{
    static const char *const names[] = {
        [FORMAT_TEXT] = "text", [FORMAT_MARKDOWN] = "markdown", [FORMAT_CSV] = "csv", [FORMAT_GITHUB] = "github",
        [FORMAT_JSON] = "json"};
    for (int format = FORMAT_TEXT; format <= FORMAT_JSON; format++) {
        if (strcmp(text, names[format]) == 0) {
            parsing->options->format = (enum format)format;
            return true;
        }
    }
    return fail(parsing, "--format: '%.100s' is none of text, markdown, csv, github, json", text);
}

static bool take_sort(struct parsing *parsing, const char *text)
{
    static const char *const names[] = {[SORT_CHANGE] = "change", [SORT_NAME] = "name", [SORT_FILE] = "file"};
    for (int sort = SORT_CHANGE; sort <= SORT_FILE; sort++) {
        if (strcmp(text, names[sort]) == 0) {
            parsing->options->listing.sort = (enum sort)sort;
            return true;
        }
    }
    return fail(parsing, "--sort: '%.100s' is none of change, name, file", text);
}

static bool take_limit(struct parsing *parsing, const char *text)
{
    uint64_t limit = 0;
    if (!parse_whole(text, &limit) || limit > 1000000000)
        return fail(parsing, "--limit: '%.100s' is not a number of cases", text);
    parsing->options->listing.limit = (size_t)limit;
    return true;
}

static bool take_metric(struct parsing *parsing, const char *text)
{
    parsing->options->settings.metric = find_metric(text);
    if (!parsing->options->settings.metric) { /* whether there is one, the files say */
        parsing->options->counter = counter_metric(text);
        parsing->options->settings.metric = &parsing->options->counter;
    }
    return true;
}

static bool take_text(struct parsing *parsing, enum option option, const char *text, const char **out)
{
    *out = text;
    return *text != '\0' || fail(parsing, "%s: an empty value", known[option].name);
}

static bool take_host_params(struct parsing *parsing, const char *text)
{
    parsing->options->settings.host_params = text;
    return is_host_params(text) ||
           fail(parsing, "--host-params: '%.100s' is not SUITE:PARAM[,SUITE:PARAM...]", text);
}

static bool apply_value(struct parsing *parsing, enum option option, const char *text)
{
    struct options *options = parsing->options;
    struct rule *rule = &options->settings.rule;
    switch (option) {
    case OPTION_MARGIN:
        return take_percent(parsing, option, text, 0.0, 1000.0, &rule->margin);
    case OPTION_CONFIDENCE:
        return take_percent(parsing, option, text, 50.1, 99.9999, &rule->confidence);
    case OPTION_FALSE_ALARMS:
        return take_percent(parsing, option, text, 0.0001, 49.0, &rule->false_alarms);
    case OPTION_SCREEN:
        return take_percent(parsing, option, text, 0.0, 1000.0, &options->settings.screen);
    case OPTION_THRESHOLD:
        return take_percent(parsing, option, text, 0.0, 1000.0, &rule->threshold);
    case OPTION_METRIC:
        return take_metric(parsing, text);
    case OPTION_FORMAT:
        return take_format(parsing, text);
    case OPTION_SORT:
        return take_sort(parsing, text);
    case OPTION_LIMIT:
        return take_limit(parsing, text);
    case OPTION_FILTER:
        return take_text(parsing, option, text, &options->filter);
    case OPTION_HOST_PARAMS:
        return take_host_params(parsing, text);
    case OPTION_ONLY:
        return take_text(parsing, option, text, &options->only);
    case OPTION_VERDICTS:
        return take_text(parsing, option, text, &options->verdicts);
    case OPTION_TIMEOUT:
        return take_seconds(parsing, option, text, &options->timeout_s);
    case OPTION_RACE_SECONDS:
        return take_seconds(parsing, option, text, &options->race_s);
    default:
        return take_text(parsing, option, text, &options->output);
    }
}

/* OLD NEW: more words may be files of another way to compare. */
static bool take_two(struct parsing *parsing, enum option option)
{
    struct options *options = parsing->options;
    const char *const *words = parsing->argv + parsing->next;
    options->mode = option == OPTION_RACE ? MODE_RACE : MODE_KERNELS;
    for (int i = 0; i < 2; i++)
        if (parsing->next + i >= parsing->argc || !is_file(words[i]))
            return fail(parsing, "%s needs two %s, OLD and NEW", known[option].name,
                        option == OPTION_RACE ? "programs" : "files");
    parsing->next += 2;
    options->baseline = (struct paths){words, 1};
    options->current = (struct paths){words + 1, 1};
    return true;
}

static bool apply_files(struct parsing *parsing, enum option option)
{
    struct options *options = parsing->options;
    if (option == OPTION_VARIANTS)
        options->mode = MODE_VARIANTS;
    if (option == OPTION_SELF)
        options->mode = MODE_SELF;
    if (option == OPTION_CHECK)
        options->mode = MODE_CHECK;
    if (option == OPTION_CARDS)
        options->mode = MODE_CARDS;
    if (option == OPTION_HISTORY)
        options->mode = MODE_HISTORY;
    if (option == OPTION_RACE || option == OPTION_KERNELS)
        return take_two(parsing, option);
    return take_files(parsing, option, option == OPTION_CURRENT ? &options->current : &options->baseline);
}

static void apply_switch(struct options *options, enum option option)
{
    if (option == OPTION_ALL)
        options->listing.all = true;
    else if (option == OPTION_SUBSET)
        options->settings.subset = true;
    else if (option == OPTION_OLDEST)
        options->oldest = true;
    else if (option == OPTION_IGNORE_DEVICE)
        options->settings.ignore_device = true;
    else if (option == OPTION_KEEP_CONSTANT)
        options->settings.keep_constant = true;
    else
        options->mode = MODE_HELP;
}

static bool apply_option(struct parsing *parsing, const char *word)
{
    const char *value = NULL;
    enum option option = find_option(word, &value);
    if (option == OPTIONS)
        return fail(parsing, "unknown option '%.100s'", word);
    if (parsing->seen[option])
        return fail(parsing, "%s is given twice", known[option].name);
    parsing->seen[option] = true;
    if (value && known[option].takes != TAKES_VALUE)
        return fail(parsing, "%s: takes no value after '=': '%.100s'", known[option].name, value);
    if (known[option].takes == TAKES_FILES)
        return apply_files(parsing, option);
    if (known[option].takes == TAKES_NOTHING) {
        apply_switch(parsing->options, option);
        return true;
    }
    if (!value && parsing->next == parsing->argc)
        return fail(parsing, "%s needs a value", known[option].name);
    return apply_value(parsing, option, value ? value : parsing->argv[parsing->next++]);
}

/* Bare files are BASELINE and CURRENT; anywhere among the options. */
static bool apply_file(struct parsing *parsing, const char *const *word)
{
    struct options *options = parsing->options;
    if (++parsing->files > 2)
        return fail(parsing, "'%.100s' is a third file; several a side: --baseline FILE... --current FILE...",
                    *word);
    *(parsing->files == 1 ? &options->baseline : &options->current) = (struct paths){word, 1};
    return true;
}

static bool check_sides(struct parsing *parsing)
{
    const struct options *options = parsing->options;
    const bool *seen = parsing->seen;
    int ways = (parsing->files > 0) + (seen[OPTION_BASELINE] || seen[OPTION_CURRENT]) + seen[OPTION_VARIANTS] +
               seen[OPTION_SELF] + seen[OPTION_CHECK] + seen[OPTION_RACE] + seen[OPTION_CARDS] +
               seen[OPTION_HISTORY] + seen[OPTION_KERNELS];
    if (options->mode == MODE_HELP)
        return true;
    if (ways > 1)
        return fail(parsing, "files are given in more than one way; choose BASELINE CURRENT, --baseline with "
                             "--current, --variants, --self, --check, --race, --cards, --history, or "
                             "--kernels");
    if (options->mode != MODE_RACE &&
        (options->only || seen[OPTION_TIMEOUT] || seen[OPTION_RACE_SECONDS] || options->arguments.items))
        return fail(parsing, "%s is for --race",
                    options->only               ? "--only"
                    : seen[OPTION_TIMEOUT]      ? "--timeout"
                    : seen[OPTION_RACE_SECONDS] ? "--race-seconds"
                                                : "'--'");
    if (options->verdicts && options->mode != MODE_COMPARE && options->mode != MODE_VARIANTS &&
        options->mode != MODE_RACE)
        return fail(parsing, "--verdicts is for what has verdicts: two sides, --variants and --race");
    if ((options->mode == MODE_CARDS || options->mode == MODE_HISTORY) &&
        (options->format == FORMAT_MARKDOWN || options->format == FORMAT_GITHUB))
        return fail(parsing, "%s writes the formats text, csv and json",
                    known[options->mode == MODE_CARDS ? OPTION_CARDS : OPTION_HISTORY].name);
    if (options->mode == MODE_KERNELS && options->format != FORMAT_TEXT)
        return fail(parsing, "--kernels writes text");
    if (options->mode == MODE_SELF && options->format == FORMAT_GITHUB)
        return fail(parsing, "--self writes the formats text, markdown, csv and json");
    if (options->baseline.count == 0)
        return fail(parsing, "no baseline file is given");
    if (options->mode == MODE_COMPARE && options->current.count == 0)
        return fail(parsing, "no current file is given beside the baseline '%.100s'", options->baseline.items[0]);
    return true;
}

bool parse_options(struct options *options, int argc, const char *const *argv,
                   char error[options_error_capacity])
{
    *options = (struct options){.settings = {.rule = default_rule(), .metric = find_metric("median_us")},
                                .listing = {.limit = 15},
                                .timeout_s = 3600.0,
                                .race_s = INFINITY};
    struct parsing parsing = {.options = options, .argv = argv, .argc = argc, .next = 1, .error = error};
    while (parsing.next < argc) {
        const char *const *word = &argv[parsing.next++];
        if (strcmp(*word, "--") == 0) {
            options->arguments = (struct paths){word + 1, (size_t)(argc - parsing.next)};
            break;
        }
        if (is_file(*word) ? !apply_file(&parsing, word) : !apply_option(&parsing, *word))
            return false;
        if (options->mode == MODE_HELP)
            return true;
    }
    options->listing.screen = !parsing.seen[OPTION_LIMIT];
    if (!parsing.seen[OPTION_LIMIT] && options->format == FORMAT_MARKDOWN)
        options->listing.limit = most_in_comment;
    if (!parsing.seen[OPTION_LIMIT] && options->listing.all)
        options->listing.limit = 0;
    return check_sides(&parsing);
}

static const char synopsis[] =
    "usage: gpubench-compare [options] BASELINE.csv CURRENT.csv\n"
    "       gpubench-compare [options] --baseline FILE... --current FILE...\n"
    "       gpubench-compare [options] --variants FILE...\n"
    "       gpubench-compare [options] --self FILE...\n"
    "       gpubench-compare --check FILE...\n"
    "       gpubench-compare [options] --cards FILE...\n"
    "       gpubench-compare [options] --history FILE...\n"
    "       gpubench-compare [options] --kernels OLD.csv NEW.csv\n"
    "       gpubench-compare [options] --race OLD NEW [-- ARGUMENTS]\n"
    "\n"
    "Says for each case whether the current results are slower, faster or the same\n"
    "as the baseline, or that the data cannot tell. --variants compares, within one\n"
    "side, each variant with the first of its case. --self splits runs of the same\n"
    "code in balanced ways (all, or 4000 drawn at random) and says how often that\n"
    "raises a false alarm. --check only reads the files.\n"
    "--cards says which cards (by uuid) differ from the others of their model, by how\n"
    "much and in which cases.\n"
    "--history says how each case fared from campaign to campaign, in the order of\n"
    "their timestamps, and between which revisions its level changed.\n"
    "--kernels takes two files that a program's --kernels-csv wrote, and says which\n"
    "kernel of a case takes longer than before (--filter, --limit and --output apply).\n"
    "--race starts two programs built on gpubench.h in turns, with the ARGUMENTS, and\n"
    "judges pairs of processes: 5, then 10, 20 and 40 of the cases that are not decided.\n"
    "A FILE is CSV of schema 1 or 2; - is standard input. Schema 1's modes cold and\n"
    "graph are read as dirty and dirty-graph, after what their flush left behind.\n"
    "\n";

static const char option_lines[] =
    "  --margin PERCENT        smaller changes do not matter (2)\n"
    "  --confidence PERCENT    with which each bound of an interval holds (95)\n"
    "  --false-alarms PERCENT  chance of any alarm where nothing changed (1)\n"
    "  --threshold PERCENT     for a baseline of a single run (5)\n"
    "  --screen PERCENT        what is inconclusive and at most this much worse passes: for\n"
    "                          what is in front of a race of the rest\n"
    "  --metric NAME           median_us (default), min_us, mean_us, p95_us,\n"
    "                          gb_per_s, tflop_per_s, or a counter of the cases'\n"
    "                          own: more of NAME/s is better, of others less\n"
    "  --filter REGEX          only cases whose name matches (POSIX extended)\n"
    "  --subset                cases may be missing in current\n"
    "  --host-params LIST      SUITE:PARAM,... : numbers of the host; cases that no process of\n"
    "                          the baseline has whose highest is the current one are\n"
    "                          other hosts', and not missing\n"
    "  --oldest                judge against the oldest campaign of each case only\n"
    "  --ignore-device         compare results of different devices\n"
    "  --keep-constant         compare times as measured, with what two events cost\n"
    "                          on their host (else taken out where it differs)\n"
    "  --format FORMAT         text (default), markdown, csv, json,\n"
    "                          github (annotations)\n"
    "  --all                   list the same and the inconclusive cases, too\n"
    "  --sort ORDER            change (default: the largest first), name, file\n"
    "  --limit N               list so many cases at most (15, or fewer where the text\n"
    "                          would not fit a screen of 50 lines; markdown 60; with\n"
    "                          --all, and with 0: every one)\n"
    "  --output FILE           write there instead of to standard output\n"
    "  --verdicts FILE         write the verdicts there as well, as --format csv does\n"
    "  --output FOLDER         of a race: keep the rows there, old.csv and new.csv\n"
    "  --only FILE             race only these cases: lines of the programs' --list\n"
    "  --timeout SECONDS       for one process of a race (3600)\n"
    "  --race-seconds SECONDS  begin no pair of a race later; what is not decided by\n"
    "                          then is inconclusive (default: no end)\n"
    "  --help                  print this\n"
    "\n";

static const char statuses[] =
    "Exit status: 0 fine; 1 at least one case is slower, missing or no longer ok\n"
    "(--self: a false alarm in more than 1 % of the splits); 2 cannot judge.\n"
    "--cards ends with 1 where a card is odd, with 2 where no model has three cards.\n"
    "--variants and --history never end with 1: what is slower there is a finding.\n";

void print_usage(FILE *out)
{
    fputs(synopsis, out);
    fputs(option_lines, out);
    fputs(statuses, out);
}
