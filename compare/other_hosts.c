#include "precise.h"

#include "other_hosts.h"

#include <string.h>

/* Of words with a blank between them, where the one is that begins with the size characters of
 * name and "=", or NULL. */
static const char *find_word(const char *words, const char *name, size_t size)
{
    for (const char *word = words; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (strncmp(word, name, size) == 0 && word[size] == '=')
            return word;
    }
    return NULL;
}

/* The word of a case's params that the list names, or NULL. */
static const char *number_word(const char *list, const struct case_key *key)
{
    const char *word = NULL, *suite = key->parts[KEY_SUITE];
    size_t size = strlen(suite);
    for (const char *item = list; !word && item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, suite, size) == 0 && item[size] == ':')
            word = find_word(key->parts[KEY_PARAMS], item + size + 1, strcspn(item + size + 1, ","));
    }
    return word;
}

bool is_host_params(const char *list)
{
    for (const char *item = list;; item++) {
        size_t suite = strcspn(item, ":,= ");
        size_t name = item[suite] == ':' ? strcspn(item + suite + 1, ":,= ") : 0;
        if (suite == 0 || name == 0)
            return false;
        item += suite + 1 + name;
        if (*item != ',')
            return *item == '\0';
    }
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
    const char *list = comparison->settings->host_params;
    bool complete = true;
    for (size_t i = 0; complete && i < comparison->count; i++) {
        const struct case_key *key = &cases[comparison->results[i].case_id];
        const char *word = number_word(list, key);
        if (word && comparison->results[i].in_current)
            complete = learn(&known, key, word);
    }
    for (size_t i = 0; complete && i < comparison->count; i++) {
        struct case_result *result = &comparison->results[i];
        const struct case_key *key = &cases[result->case_id];
        const char *word = number_word(list, key);
        if (word && result->outcome == OUTCOME_MISSING && !result->in_current &&
            is_known(&known, key, NULL) && !is_known(&known, key, word))
            result->outcome = OUTCOME_ELSEWHERE;
    }
    intern_free(&known);
    return complete;
}
