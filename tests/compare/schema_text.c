#include "schema_text.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void add_text(struct text *text, const char *format, ...)
{
    for (;;) {
        size_t room = text->capacity - text->size;
        va_list arguments;
        va_start(arguments, format);
        int length = vsnprintf(text->bytes ? text->bytes + text->size : NULL, room, format, arguments);
        va_end(arguments);
        assert_true(length >= 0);
        if ((size_t)length < room) {
            text->size += (size_t)length;
            return;
        }
        text->capacity = 2 * text->capacity + (size_t)length + 1;
        text->bytes = realloc(text->bytes, text->capacity);
        assert_non_null(text->bytes);
    }
}

void add_header(struct text *text)
{
    add_text(text, "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,order,status,flags,"
                   "median_us,overhead_us,gb_per_s,bytes,flops,device,uuid,pci,git,timestamp,counters,node,seed,driver\n");
}

static const char *usual(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

void add_row(struct text *text, struct text_row row)
{
    add_text(text, "%s,%s,%s,%s,%s,f32,%s,%s,%s,%u,0,%s,%s,%s,%s,%s,%s,%s,%s,%s,0000:01:00.0,%s,%s,%s,%s,%s,580\n", usual(row.schema, "2"), usual(row.suite, "suite"),
             usual(row.name, "copy"), usual(row.variant, "plain"), usual(row.backend, "cuda"), usual(row.params, "n=1"), usual(row.mode, "cold"),
             usual(row.campaign, "c1"), row.run, usual(row.status, "ok"), usual(row.flags, ""),
             usual(row.median_us, "100"), usual(row.overhead_us, ""), usual(row.gb_per_s, ""), usual(row.bytes, "1024"), usual(row.flops, ""),
             usual(row.device, "NVIDIA H100"), usual(row.uuid, "GPU-1"), usual(row.git, "abc1234"),
             usual(row.timestamp, ""), usual(row.counters, ""), usual(row.node, ""), usual(row.seed, "1"));
}

void add_runs(struct text *text, struct text_row row, unsigned runs, double median_us, double spread)
{
    char median[40];
    row.median_us = median;
    for (unsigned run = 0; run < runs; run++) {
        snprintf(median, sizeof median, "%.17g", median_us * (run % 2 ? 1.0 + spread : 1.0 - spread));
        row.run++;
        add_row(text, row);
    }
}

void free_text(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

struct settings usual_settings(void)
{
    return (struct settings){.rule = default_rule(), .metric = find_metric("median_us")};
}

void compare_texts(struct compared *compared, struct settings settings, const struct text *baseline,
                   const struct text *current)
{
    static const char *const baseline_path = "BASE.csv";
    static const char *const current_path = "CUR.csv";
    *compared = (struct compared){.catalogue = {.metric = settings.metric}, .settings = settings};
    compared->loaded = results_load_bytes(&compared->baseline, &compared->catalogue, &baseline_path, baseline->bytes,
                                          baseline->size, compared->error) &&
                       results_load_bytes(&compared->current, &compared->catalogue, &current_path, current->bytes,
                                          current->size, compared->error);
    if (!compared->loaded)
        return;
    assert_true(find_constants(&compared->constants, &compared->catalogue, &compared->baseline, &compared->current));
    compared->settings.constants = &compared->constants;
    assert_true(compare_sides(&compared->comparison, &compared->settings, &compared->catalogue,
                              &compared->baseline, &compared->current));
}

void compared_free(struct compared *compared)
{
    comparison_free(&compared->comparison);
    results_free(&compared->baseline);
    results_free(&compared->current);
    catalogue_free(&compared->catalogue);
}
