#include "precise.h"

#include "race_arguments.h"

#include "number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a race gives each process beside the user's words. */
enum { own_words = 16 };

static const char *const refused[] = {"--csv",  "--runs",    "--campaign", "--list",
                                      "--help", "--profile", "--samples"};

/* Whether the word is "--name" or "--name=value". */
static bool is_option(const char *word, const char *name)
{
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && (word[size] == '\0' || word[size] == '=');
}

static bool refuse_option(const char *word, char *error)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (!is_option(word, refused[i]))
            continue;
        snprintf(error, race_error_capacity,
                 "%s behind '--': a race gives its programs that itself or has no use for it",
                 refused[i]);
        return true;
    }
    return false;
}

/* The value in the word or in the next one, which is then taken. */
static const char *value_of(const struct paths *given, size_t *i)
{
    const char *equals = strchr(given->items[*i], '=');
    if (equals)
        return equals + 1;
    return *i + 1 < given->count ? given->items[++*i] : NULL;
}

static bool take_seed(struct race_arguments *out, const char *text, char *error)
{
    if (text && parse_whole(text, &out->seed) && out->seed <= UINT64_MAX - 1000)
        return true;
    snprintf(error, race_error_capacity, "--seed behind '--': '%.60s' is not a whole number",
             text ? text : "");
    return false;
}

bool race_arguments_take(struct race_arguments *out, const struct paths *given,
                         char error[race_error_capacity])
{
    *out = (struct race_arguments){.seed = 1,
                                   .items = malloc((given->count + 1) * sizeof out->items[0])};
    if (!out->items) {
        snprintf(error, race_error_capacity, "not enough memory");
        return false;
    }
    for (size_t i = 0; i < given->count; i++) {
        const char *word = given->items[i];
        if (refuse_option(word, error))
            return false;
        if (is_option(word, "--quiet"))
            continue;
        if (is_option(word, "--seed")) {
            if (!take_seed(out, value_of(given, &i), error))
                return false;
        } else if (is_option(word, "--filter")) {
            out->filter = value_of(given, &i);
        } else if (strcmp(word, "--no-verify") == 0) {
            out->no_verify = true;
        } else {
            out->items[out->count++] = word;
        }
    }
    return true;
}

void race_arguments_free(struct race_arguments *arguments)
{
    free(arguments->items);
    arguments->items = NULL;
}

/* The user's words, in a warm-up without those that would make it last. */
static size_t add_given(const struct race_arguments *arguments, bool brief, const char **words)
{
    static const char *const lasting[] = {"--min-samples", "--max-time"};
    size_t count = 0;
    for (size_t i = 0; i < arguments->count; i++) {
        const char *word = arguments->items[i];
        if (brief && (is_option(word, lasting[0]) || is_option(word, lasting[1])))
            i += strchr(word, '=') == NULL;
        else
            words[count++] = word;
    }
    return count;
}

const char **race_arguments_words(const struct race_arguments *arguments, const char *program,
                                  const char *csv, const char *filter, struct race_turn turn,
                                  char seed_text[32])
{
    static const char *const briefly[] = {"--min-samples", "1", "--max-time", "0.01"};
    bool warms_up = turn.pair == 0;
    const char **words = malloc((arguments->count + own_words) * sizeof words[0]);
    size_t count = 0;
    if (!words)
        return NULL;
    snprintf(seed_text, 32, "%" PRIu64, arguments->seed + (warms_up ? 0 : turn.pair - 1));
    words[count++] = program;
    count += add_given(arguments, warms_up, words + count);
    const char *const own[] = {"--csv", csv, "--quiet", "--campaign", "race", "--seed", seed_text};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        words[count++] = own[i];
    for (size_t i = 0; warms_up && i < sizeof briefly / sizeof briefly[0]; i++)
        words[count++] = briefly[i];
    if (!turn.verify || arguments->no_verify)
        words[count++] = "--no-verify";
    if (filter) {
        words[count++] = "--filter";
        words[count++] = filter;
    }
    words[count] = NULL;
    return words;
}
