#include "precise.h"

#include "other_hosts.h"

#include <stdlib.h>
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

/* A number of its host that a case's params name. */
struct number {
    const char *param; /* where in the list that is; NULL: they name none */
    uint64_t value;
};

static struct number number_of(const char *list, const struct case_key *key)
{
    const char *suite = key->parts[KEY_SUITE];
    size_t size = strlen(suite);
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, suite, size) != 0 || item[size] != ':')
            continue;
        const char *name = item + size + 1;
        size_t name_size = strcspn(name, ",");
        const char *word = find_word(key->parts[KEY_PARAMS], name, name_size);
        if (word)
            return (struct number){item, strtoull(word + name_size + 1, NULL, 10)};
    }
    return (struct number){NULL, 0};
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

/* Hosts by what was measured on them: of a param the highest number in the rows of a sitting, whose
 * further processes measure few. All current rows are one host's. */
struct hosts {
    const struct comparison *comparison;
    struct intern_table known;
    uint64_t *highest; /* of each */
    bool *has_alike;   /* of current's: whether the baseline has one of as many */
    bool *expected;    /* of each case: whether such a one has measured it */
    struct intern_table traits;
};

enum purpose { TO_ADD, TO_FIND };

static uint32_t host_of(struct hosts *hosts, const char *param, const struct row *in_baseline, enum purpose purpose)
{
    struct {
        const char *param;
        uint32_t file, sitting;
        bool is_baseline;
    } key;
    memset(&key, 0, sizeof key); /* what is between its members too */
    key.param = param;
    if (in_baseline) {
        key.file = in_baseline->file;
        key.sitting = in_baseline->sitting;
        key.is_baseline = true;
    }
    return purpose == TO_ADD ? intern_add(&hosts->known, &key, sizeof key, NULL)
                             : intern_find(&hosts->known, &key, sizeof key);
}

static struct number number_of_case(const struct hosts *hosts, uint32_t case_id)
{
    return number_of(hosts->comparison->settings->host_params,
                     &hosts->comparison->catalogue->cases[case_id]);
}

/* What current has rows of: a case's name, a number of its suite, both. */
enum trait { NAME = 1, NUMBER = 2 };

static uint32_t trait_of(struct hosts *hosts, uint32_t case_id, unsigned traits, enum purpose purpose)
{
    const struct case_key *key = &hosts->comparison->catalogue->cases[case_id];
    struct number number = number_of_case(hosts, case_id);
    struct {
        const char *param, *name; /* the catalogue has each text once */
        uint64_t value;
        unsigned traits;
    } trait;
    memset(&trait, 0, sizeof trait);
    trait.param = number.param;
    trait.name = traits & NAME ? key->parts[KEY_CASE] : NULL;
    trait.value = traits & NUMBER ? number.value : 0;
    trait.traits = traits;
    return purpose == TO_ADD ? intern_add(&hosts->traits, &trait, sizeof trait, NULL)
                             : intern_find(&hosts->traits, &trait, sizeof trait);
}

static bool learn_traits(struct hosts *hosts, uint32_t case_id)
{
    for (unsigned traits = NAME; traits <= (NAME | NUMBER); traits++)
        if (trait_of(hosts, case_id, traits, TO_ADD) == INTERN_NONE)
            return false;
    return true;
}

static bool current_has(struct hosts *hosts, uint32_t case_id, unsigned traits)
{
    return trait_of(hosts, case_id, traits, TO_FIND) != INTERN_NONE;
}

static bool learn(struct hosts *hosts, const struct results *side)
{
    bool is_baseline = side == hosts->comparison->baseline;
    for (size_t i = 0; i < side->count; i++) {
        const struct row *row = &side->rows[i];
        struct number number = number_of_case(hosts, row->case_id);
        if (!number.param)
            continue;
        uint32_t host = host_of(hosts, number.param, is_baseline ? row : NULL, TO_ADD);
        if (host == INTERN_NONE || (!is_baseline && !learn_traits(hosts, row->case_id)))
            return false;
        if (number.value > hosts->highest[host])
            hosts->highest[host] = number.value;
    }
    return true;
}

static void find_alike(struct hosts *hosts)
{
    const struct results *baseline = hosts->comparison->baseline;
    for (size_t i = 0; i < baseline->count; i++) {
        const struct row *row = &baseline->rows[i];
        const char *param = number_of_case(hosts, row->case_id).param;
        uint32_t current = param ? host_of(hosts, param, NULL, TO_FIND) : INTERN_NONE;
        if (current == INTERN_NONE ||
            hosts->highest[host_of(hosts, param, row, TO_FIND)] != hosts->highest[current])
            continue;
        hosts->has_alike[current] = true;
        hosts->expected[row->case_id] |= row->status == STATUS_OK;
    }
}

/* Whether a host of as many measured it; where there is none, current's own rows tell: it measures
 * that number, and this case not with others alone. */
static bool is_missed(struct hosts *hosts, uint32_t case_id, uint32_t current)
{
    if (hosts->has_alike[current])
        return hosts->expected[case_id];
    return current_has(hosts, case_id, NUMBER) &&
           (current_has(hosts, case_id, NAME | NUMBER) || !current_has(hosts, case_id, NAME));
}

static void mark_elsewhere(struct hosts *hosts, struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        struct case_result *result = &comparison->results[i];
        const char *param = number_of_case(hosts, result->case_id).param;
        uint32_t current = param ? host_of(hosts, param, NULL, TO_FIND) : INTERN_NONE;
        if (current != INTERN_NONE && result->outcome == OUTCOME_MISSING && !result->in_current &&
            !is_missed(hosts, result->case_id, current))
            result->outcome = OUTCOME_ELSEWHERE;
    }
}

bool note_other_hosts(struct comparison *comparison)
{
    size_t rows = comparison->baseline->count + comparison->current->count + 1;
    size_t cases = comparison->catalogue->keys.count + 1;
    struct hosts hosts = {.comparison = comparison,
                          .highest = calloc(rows, sizeof hosts.highest[0]),
                          .has_alike = calloc(rows, sizeof hosts.has_alike[0]),
                          .expected = calloc(cases, sizeof hosts.expected[0])};
    bool complete = hosts.highest && hosts.has_alike && hosts.expected &&
                    learn(&hosts, comparison->baseline) && learn(&hosts, comparison->current);
    if (complete) {
        find_alike(&hosts);
        mark_elsewhere(&hosts, comparison);
    }
    intern_free(&hosts.traits);
    intern_free(&hosts.known);
    free(hosts.highest);
    free(hosts.has_alike);
    free(hosts.expected);
    return complete;
}
