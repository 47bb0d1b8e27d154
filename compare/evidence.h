/* What the runs of one case say: points 1 and 2 of the rule in verdict.h. */
#ifndef GPUBENCH_COMPARE_EVIDENCE_H
#define GPUBENCH_COMPARE_EVIDENCE_H

#include "statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All five as fractions: 0.02 is 2 %. */
struct rule {
    double margin;           /* a smaller change does not matter; >= 0 */
    double confidence;       /* of each bound of an interval; in (0.5, 1) */
    double false_alarms;     /* for the whole comparison; in (0, 0.5) */
    double threshold;        /* for a baseline of one run; > 0 */
    double campaign_spread;  /* standard deviation, where the baseline cannot tell it; >= 0 */
    bool campaigns_in_common; /* equal campaign numbers are the same sitting */
};

/* One side of one case: runs > 0. */
struct side {
    const double *log_costs;
    const uint32_t *campaigns;
    size_t runs;
};

/* What one case contributes, before the cases of a comparison are looked at
 * together. */
struct evidence {
    double log_ratio;        /* of the means */
    double median_log_ratio; /* of the medians */
    size_t baseline_runs;    /* without those outside the fence */
    size_t baseline_outside;
    size_t current_runs;
    size_t baseline_campaigns;
    size_t current_campaigns;
    bool paired; /* a run is a pair of processes, one of each side: see race_judge.h */
    struct variance run_variance;
    double run_factor;              /* the share of run_variance in the change's variance */
    bool campaigns_counted;         /* the three below are only then set */
    struct variance between_square; /* mean square between the campaigns of a side */
    double campaign_factor;         /* as run_factor, for the variance between campaigns */
    double runs_per_campaign;       /* how often between_square holds that variance */
    double uncounted_factor; /* as campaign_factor, where the baseline's campaigns are too few */
};

/* Fills *evidence, and outside[0 .. baseline.runs) with the runs that the fence
 * leaves out. Returns false when memory ran out. */
bool gather_evidence(struct side baseline, struct side current, const struct rule *rule, bool *outside,
                     struct evidence *evidence);

#endif
