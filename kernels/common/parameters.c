/*
 * parameters.c - the parameter tensors of a pre-norm GPT.
 */
#include "parameters.h"

enum { TENSORS_BEFORE = 2, TENSORS_PER_LAYER = 12, TENSORS_BEHIND = 3 };

int64_t parameters_tensor_count(const parameters_model *model)
{
    return TENSORS_BEFORE + TENSORS_PER_LAYER * model->layers + TENSORS_BEHIND;
}

static parameters_tensor layer_tensor(const parameters_model *m, int64_t layer, int64_t index)
{
    const int64_t d = m->d_model, ff = m->d_ff;
    const parameters_tensor tensors[TENSORS_PER_LAYER] = {
        {"ln1.weight", layer, 1, d},  {"ln1.bias", layer, 1, d},
        {"qkv.weight", layer, 3 * d, d}, {"qkv.bias", layer, 1, 3 * d},
        {"proj.weight", layer, d, d}, {"proj.bias", layer, 1, d},
        {"ln2.weight", layer, 1, d},  {"ln2.bias", layer, 1, d},
        {"fc1.weight", layer, ff, d}, {"fc1.bias", layer, 1, ff},
        {"fc2.weight", layer, d, ff}, {"fc2.bias", layer, 1, d},
    };
    return tensors[index];
}

parameters_tensor parameters_tensor_at(const parameters_model *model, int64_t index)
{
    const parameters_model *m = model;
    const parameters_tensor before[TENSORS_BEFORE] = {
        {"token_embedding", -1, m->vocabulary, m->d_model},
        {"position_embedding", -1, m->context, m->d_model},
    };
    const parameters_tensor behind[TENSORS_BEHIND] = {
        {"ln.weight", -1, 1, m->d_model},
        {"ln.bias", -1, 1, m->d_model},
        {"head.weight", -1, m->vocabulary, m->d_model},
    };
    int64_t in_layers = index - TENSORS_BEFORE;
    if (in_layers < 0) return before[index];
    if (in_layers >= TENSORS_PER_LAYER * m->layers)
        return behind[in_layers - TENSORS_PER_LAYER * m->layers];
    return layer_tensor(m, in_layers / TENSORS_PER_LAYER, in_layers % TENSORS_PER_LAYER);
}

int64_t parameters_elements(const parameters_tensor *tensor)
{
    return tensor->rows * tensor->columns;
}

int64_t parameters_total(const parameters_model *model)
{
    int64_t total = 0;
    for (int64_t i = 0; i < parameters_tensor_count(model); i++) {
        parameters_tensor tensor = parameters_tensor_at(model, i);
        total += parameters_elements(&tensor);
    }
    return total;
}
