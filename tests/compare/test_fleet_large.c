/* A thousand nodes of eight cards: how many healthy fleets are accused, and how often one
 * card that is 5 % slower is found, where cards, processes and hosts are as one meets
 * them. A few fleets of each kind; GPUBENCH_FLEETS=1000 draws so many, for the numbers in
 * compare/README.md. */
#include "../../compare/fleet.h"
#include "../../compare/verdict.h"

#include "cmocka_all.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { nodes = 1000, per_node = 8, cards = nodes * per_node, cases = 12, most_runs = 3 };

/* Where the slow card is, in a node of the larger group of hosts. */
enum { slow_card = 4171 };

struct world {
    const char *name;
    double card_spread; /* of a card in all its cases */
    double case_spread; /* of a card in each case by itself */
    double run_spread;
    unsigned runs;
    bool heavy;           /* runs are of Student's distribution with 3 degrees of freedom */
    double outliers;      /* so many of all processes take 1.8 times as long */
    double group;         /* so many of the nodes are slower */
    double group_slower;  /* by this */
    uint32_t group_cases; /* in so many of the cases */
};

static double random_student_3(uint64_t *random)
{
    double squares = 0.0;
    for (int i = 0; i < 3; i++) {
        double normal = random_normal(random);
        squares += normal * normal;
    }
    return random_normal(random) / sqrt(squares / 3.0);
}

static double median_of_runs(double level, const struct world *world, uint64_t *random)
{
    double values[most_runs];
    for (unsigned run = 0; run < world->runs; run++) {
        double off = world->heavy ? random_student_3(random) : random_normal(random);
        values[run] = level + world->run_spread * off;
        if (world->outliers > 0.0 && random_uniform(random) < world->outliers)
            values[run] += log(1.8);
    }
    return median_by_sorting(values, world->runs);
}

/* The nodes at the end are the second group. */
static void draw_fleet(const struct world *world, double slower, struct fleet_value *values, uint64_t *random)
{
    static double level[cards];
    uint32_t first_of_group = (uint32_t)(nodes * (1.0 - world->group)) * per_node;
    for (uint32_t card = 0; card < cards; card++)
        level[card] = world->card_spread * random_normal(random);
    level[slow_card] += log1p(slower);
    for (uint32_t id = 0; id < cases; id++)
        for (uint32_t card = 0; card < cards; card++) {
            double of_card = level[card] + world->case_spread * random_normal(random);
            if (card >= first_of_group && id < world->group_cases)
                of_card += log1p(world->group_slower);
            values[id * cards + card] = (struct fleet_value){
                card, id, world->runs, id + median_of_runs(of_card, world, random), 0, 0};
        }
}

struct tally {
    unsigned fleets, accused, found;
};

static struct tally simulate(const struct world *world, double slower, unsigned fleets)
{
    static struct fleet_value values[cards * cases];
    static struct fleet_card judged[cards];
    struct rule rule = default_rule();
    struct tally tally = {.fleets = fleets};
    uint64_t random = 20261128;
    for (unsigned fleet = 0; fleet < fleets; fleet++) {
        struct fleet_summary summary;
        bool wrong = false;
        draw_fleet(world, slower, values, &random);
        assert_true(judge_fleet(values, sizeof values / sizeof values[0], &rule, judged, cards, &summary));
        for (uint32_t card = 0; card < cards; card++) {
            bool odd = judged[card].off || judged[card].scattered;
            bool is_slow = card == slow_card && slower > 0.0;
            tally.found += odd && is_slow;
            wrong = wrong || (odd && !is_slow);
        }
        tally.accused += wrong;
    }
    return tally;
}

static const struct world worlds[] = {
    {.name = "runs spread by 1 %", .run_spread = 0.01, .runs = 3},
    {.name = "cards too, by 0.3 %", .card_spread = 0.003, .case_spread = 0.003, .run_spread = 0.01, .runs = 3},
    {.name = "one run of each card", .card_spread = 0.003, .case_spread = 0.003, .run_spread = 0.01, .runs = 1},
    {.name = "one process in 160 takes 1.8 times as long", .case_spread = 0.003, .run_spread = 0.01, .runs = 3,
     .outliers = 1.0 / 160},
    {.name = "the same, one run of each card", .case_spread = 0.003, .run_spread = 0.01, .runs = 1,
     .outliers = 1.0 / 160},
    {.name = "heavy tails (t, 3 degrees)", .case_spread = 0.003, .run_spread = 0.01, .runs = 3, .heavy = true},
    {.name = "heavy tails, one run of each card", .case_spread = 0.003, .run_spread = 0.01, .runs = 1, .heavy = true},
    {.name = "half of the hosts 3 % slower", .card_spread = 0.002, .case_spread = 0.003, .run_spread = 0.01,
     .runs = 3, .group = 0.5, .group_slower = 0.03, .group_cases = cases},
    {.name = "every twentieth host 3 % slower", .card_spread = 0.002, .case_spread = 0.003, .run_spread = 0.01,
     .runs = 3, .group = 0.05, .group_slower = 0.03, .group_cases = cases},
    {.name = "a third of the hosts 10 % slower in three cases", .card_spread = 0.002, .case_spread = 0.003,
     .run_spread = 0.01, .runs = 3, .group = 0.33, .group_slower = 0.1, .group_cases = 3},
};

enum { world_count = sizeof worlds / sizeof worlds[0] };

static unsigned fleets_wanted(unsigned few)
{
    const char *wanted = getenv("GPUBENCH_FLEETS");
    return wanted && atoi(wanted) > 0 ? (unsigned)atoi(wanted) : few;
}

/* At a rate of 1 % the chance of k or more among n fleets is below 1 in 10,000 where k is
 * this: a bound by Chernoff, exp(-n KL(k/n, 0.01)), solved for k. */
static unsigned most_accused(unsigned fleets)
{
    double n = fleets;
    unsigned k = 1;
    for (; k < fleets; k++) {
        double part = k / n;
        double divergence = part * log(part / 0.01) + (1 - part) * log((1 - part) / 0.99);
        if (part > 0.01 && n * divergence > log(10000.0))
            break;
    }
    return k;
}

static void healthy_fleets_are_not_accused(void **state)
{
    (void)state;
    unsigned fleets = fleets_wanted(2);
    for (int i = 0; i < world_count; i++) {
        struct tally tally = simulate(&worlds[i], 0.0, fleets);
        printf("  8000 cards, %s: accused %u of %u\n", worlds[i].name, tally.accused, tally.fleets);
        assert_true(tally.accused < most_accused(fleets));
    }
}

/* In the worlds without groups; with them it takes more than what is between groups. */
static void one_slow_card_is_found(void **state)
{
    (void)state;
    unsigned fleets = fleets_wanted(1);
    for (int i = 0; i < world_count; i++) {
        if (worlds[i].group > 0.0)
            continue;
        struct tally tally = simulate(&worlds[i], 0.05, fleets);
        printf("  8000 cards, %s, one 5 %% slow: found %u of %u\n", worlds[i].name, tally.found, tally.fleets);
        assert_true(tally.found * 100 >= tally.fleets * 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_fleets_are_not_accused),
        cmocka_unit_test(one_slow_card_is_found),
    };
    return cmocka_run_group_tests_name("compare: an odd card among 8000", tests, NULL, NULL);
}
