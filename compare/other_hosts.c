#include "precise.h"

#include "other_hosts.h"

#include <string.h>

/* How params tell of how many GPUs or ranks a case is: of the suites that measure all that there
 * are, as elsewhere a word may be any number. */
static const struct {
    const char *suite, *name;
} numbers[] = {{"scaling", "gpus="}, {"scaling", "ranks="}, {"collective", "n="}};

/* Of words with a blank between them, where the one that begins so is, or NULL. */
static const char *find_word(const char *words, const char *beginning)
{
    size_t size = strlen(beginning);
    for (const char *word = words; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (strncmp(word, beginning, size) == 0)
            return word;
    }
    return NULL;
}

/* The word of a case's params that tells of how many GPUs or ranks it is, or NULL. */
static const char *number_word(const struct case_key *key)
{
    const char *word = NULL;
    for (size_t i = 0; !word && i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(numbers[i].suite, key->parts[KEY_SUITE]) == 0)
            word = find_word(key->parts[KEY_PARAMS], numbers[i].name);
    return word;
}

/* A suite is the address of its name in the catalogue; with a word behind it, a number of it. */
struct number {
    const char *suite;
    char word[24]; /* longer ones, of more digits than a number has, are cut */
};

static struct number number_of(const struct case_key *key, const char *word)
{
    struct number number = {.suite = key->parts[KEY_SUITE]};
    size_t size = word ? strcspn(word, " ") : 0;
    memcpy(number.word, word ? word : "", size < sizeof number.word - 1 ? size : sizeof number.word - 1);
    return number;
}

static bool is_known(const struct intern_table *known, const struct case_key *key, const char *word)
{
    struct number number = number_of(key, word);
    return intern_find(known, &number, sizeof number) != INTERN_NONE;
}

/* Adds the suite and its number. */
static bool learn(struct intern_table *known, const struct case_key *key, const char *word)
{
    struct number suite = number_of(key, NULL), number = number_of(key, word);
    return intern_add(known, &suite, sizeof suite, NULL) != INTERN_NONE &&
           intern_add(known, &number, sizeof number, NULL) != INTERN_NONE;
}

bool note_other_hosts(struct comparison *comparison)
{
    const struct case_key *cases = comparison->catalogue->cases;
    struct intern_table known = {0};
    bool complete = true;
    for (size_t i = 0; complete && i < comparison->count; i++) {
        const struct case_key *key = &cases[comparison->results[i].case_id];
        const char *word = number_word(key);
        if (word && comparison->results[i].in_current)
            complete = learn(&known, key, word);
    }
    for (size_t i = 0; complete && i < comparison->count; i++) {
        struct case_result *result = &comparison->results[i];
        const struct case_key *key = &cases[result->case_id];
        const char *word = number_word(key);
        if (word && result->outcome == OUTCOME_MISSING && !result->in_current &&
            is_known(&known, key, NULL) && !is_known(&known, key, word))
            result->outcome = OUTCOME_ELSEWHERE;
    }
    intern_free(&known);
    return complete;
}
