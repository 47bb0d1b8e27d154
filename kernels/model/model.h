/*
 * model.h - a training step of a GPT (Radford et al., "Language models are
 * unsupervised multitask learners", 2019), assembled of the other operations:
 *
 *     x_0     = token_table[tokens] + position_table            embedding.h
 *     x_l+1   = block_l(x_l)                                    block.h
 *     logits  = norm(x_layers) head^T                           norm.h, a linear layer
 *     loss    = mean over the rows of cross_entropy(logits)     loss.h
 *
 * backward to the gradient of every parameter, then the clipping of the
 * gradients' norm and AdamW (optimizer.h). The head is the token table where the
 * shape is tied, else a matrix of its own.
 *
 * As a block is a list of parts, a step is a list of ops (model_ops_create): both
 * backends run them one by one, a phase or a component on its own is the list
 * with the others left out, and the suites' checks walk the same list.
 *
 * All memory is one piece, planned before it is taken (model_plan_of): what a
 * shape needs is known without a device, and its categories add up to it.
 */
#ifndef MODEL_H
#define MODEL_H

#include "../block/block.h"
#include "../common/parameters.h"
#include "../embedding/embedding.h"
#include "../loss/loss.h"
#include "../optimizer/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shapes ----------------------------------------------------------------------- */

/* Each at least 1; heads divide width. tokens is a sequence's length and the
 * number of positions. table_rows >= vocabulary: rows of the token table and of
 * the head, which products like to be a multiple of 8. What pads them are zeros,
 * which get no gradient: MODEL_MASK keeps their logits out of the softmax. */
typedef struct model_shape {
    int64_t batch, tokens, width, heads, hidden, layers, vocabulary, table_rows;
    int tied;
} model_shape;

int model_is_valid(const model_shape *shape);

/* Rows of tokens: batch * tokens. */
int64_t model_rows(const model_shape *shape);

block_shape model_block_shape(const model_shape *shape);

/* The parameters in order: parameters.h's, without the head where it is tied;
 * the table has table_rows rows. */
int64_t model_tensor_count(const model_shape *shape);
parameters_tensor model_tensor_at(const model_shape *shape, int64_t index);

/* The place of a layer's first tensor, of the final norm's weight (its bias
 * follows) and of the head, which is 0, the token table, where it is tied. */
int64_t model_layer_tensor(int64_t layer);
int64_t model_norm_tensor(const model_shape *shape);
int64_t model_head_tensor(const model_shape *shape);

/* Elements from the first tensor's first: of parameters, gradients and
 * optimizer's state alike. A tensor begins at a multiple of MODEL_TENSOR_ALIGNMENT
 * elements; index model_tensor_count: where all end. */
enum { MODEL_TENSOR_ALIGNMENT = 128 };
int64_t model_tensor_offset(const model_shape *shape, int64_t index);

/* Elements of all tensors, padding rows included, and without them. */
int64_t model_parameters(const model_shape *shape);

/* ---- the pass ---------------------------------------------------------------------- */

/* Phases of a step, to be combined. */
enum {
    MODEL_FORWARD = 1,  /* to the logits */
    MODEL_LOSS = 2,     /* to the mean loss; where keeps, also the logits' gradient */
    MODEL_BACKWARD = 4, /* from there to all gradients */
    MODEL_UPDATE = 8,   /* clipping and AdamW */
    MODEL_STEP = 15
};

/* "forward", "loss", "backward", "update", "forward_loss", "step"; "phases" for other
 * sets. */
const char *model_phases_name(unsigned phases);

/* What an op belongs to, for shares of a step. Products are LINEAR in blocks and
 * HEAD behind them; splits and merges of heads are COPY. */
typedef enum model_component {
    MODEL_EMBEDDING,
    MODEL_NORM,
    MODEL_ATTENTION,
    MODEL_LINEAR,
    MODEL_COPY,
    MODEL_HEAD,
    MODEL_CROSS_ENTROPY,
    MODEL_CLIP,
    MODEL_ADAMW,
    MODEL_COMPONENTS
} model_component;

enum { MODEL_ALL = (1 << MODEL_COMPONENTS) - 1 };

const char *model_component_name(int component);

/* Called around each phase and, within it, each op that is enqueued: names for whoever
 * measures. `graph` calls nobody, as it enqueues no op. */
typedef struct model_watch {
    void (*begin)(const char *name);
    void (*end)(void);
} model_watch;

/* memory: model_plan.total bytes, aligned to 512, whose parameters, state, inputs
 * and constants are there. keeps: a backward pass will follow or follows.
 * recomputes: of a kept pass only the blocks' inputs are, and backward runs each
 * block forward again. dtype f32, tf32, f16 or bf16; the halves have f32 master weights,
 * and f16 a dynamic loss scale. */
typedef struct model_args {
    model_shape shape;
    kernel_dtype dtype;
    unsigned phases;
    unsigned components; /* set of 1 << model_component: MODEL_ALL, or some ops alone */
    int keeps, recomputes;
    int64_t micro_batches; /* shape's batches a step, whose gradients are added up; 0: one */
    int64_t micro_one;     /* from 1: of those one alone, which leaves its own; 0: all */
    int blocks_only; /* 1: of the ops those in blocks alone, as block.h has them */
    int no_state; /* 1: whoever updates has the optimizer's state: only passes are run */
    block_layout layout; /* of attention: model_layout_cpu or _cuda */
    void *memory;
    optimizer_adamw settings;
    float max_norm; /* of the gradients, beyond which they are scaled down */
    optimizer_scaling scaling; /* of f16's loss */
    const float *mask; /* of attention (attention.h), or NULL: what is causal is by index */
    const struct model_habit *habit; /* that is measured, or NULL */
    const model_watch *watch; /* or NULL */
} model_args;

/* ---- memory ------------------------------------------------------------------------ */

typedef enum model_buffer {
    MODEL_TOKENS,      /* int32 [rows of all micro-batches] */
    MODEL_TARGETS,     /* int32 as many */
    MODEL_MASK,        /* [table_rows]: 0, and MODEL_MASKED behind the vocabulary */
    MODEL_ROW_WEIGHTS, /* f32 [rows]: the loss's gradient in each row's, 1 / all rows, of
                          f16 times the loss scale */
    MODEL_VALUES,      /* [model_tensor_offset]: the parameters */
    MODEL_GRADIENTS,   /* theirs */
    MODEL_SUMS,        /* f32: theirs of the micro-batches so far */
    MODEL_MASTER,      /* f32, of f16 and bf16 parameters */
    MODEL_FIRST,       /* AdamW's moments, f32 */
    MODEL_SECOND,
    MODEL_SCALER, /* an optimizer_scaler, of f16 */
    MODEL_STREAM, /* x_0 to x_layers, or two of them in turn */
    MODEL_BLOCKS, /* activations of each layer, or of one */
    MODEL_FINAL,  /* what the final norm gives: [rows, width] */
    MODEL_FINAL_MEAN,
    MODEL_FINAL_RSTD,
    MODEL_LOGITS, /* [rows, table_rows] */
    MODEL_LOSSES, /* f32 [rows of all micro-batches] */
    MODEL_RESULTS, /* f32 [MODEL_RESULT_COUNT] */
    MODEL_LOGIT_GRADIENTS,
    MODEL_FINAL_GRADIENT,
    MODEL_LAST_GRADIENT,    /* of x_layers */
    MODEL_STREAM_GRADIENTS, /* of the other x, two in turn */
    MODEL_BLOCK_GRADIENTS,  /* of one layer's activations */
    MODEL_BUFFERS
} model_buffer;

/* A logit that has no share in any softmax, in every dtype. */
#define MODEL_MASKED -30000.0f

/* The elements of MODEL_RESULTS. */
enum { MODEL_RESULT_LOSS, MODEL_RESULT_NORM, MODEL_RESULT_SCALE, MODEL_RESULT_COUNT };

typedef enum model_category {
    MODEL_OF_INPUTS, /* and constants */
    MODEL_OF_PARAMETERS,
    MODEL_OF_GRADIENTS,
    MODEL_OF_OPTIMIZER,  /* master weights and moments */
    MODEL_OF_ACTIVATIONS, /* and results */
    MODEL_OF_ACTIVATION_GRADIENTS,
    MODEL_CATEGORIES
} model_category;

const char *model_category_name(int category);
model_category model_category_of(model_buffer buffer);

/* Bytes. What a phase does not need has 0. */
typedef struct model_plan {
    uint64_t total, of[MODEL_CATEGORIES];
    uint64_t begin[MODEL_BUFFERS], bytes[MODEL_BUFFERS];
    uint64_t activation[BLOCK_ACTIVATIONS], gradient[BLOCK_ACTIVATIONS]; /* within a layer's */
    uint64_t layer_bytes; /* from one layer's activations to the next; 0: they share them */
    uint64_t row_bytes;   /* of x */
} model_plan;

/* Batches of shape's size in a step, and the rows of all. */
int64_t model_micro_batches(const model_args *args);
int64_t model_step_rows(const model_args *args);

/* args->memory is not used. UINT64_MAX as a total that does not fit. */
model_plan model_plan_of(const model_args *args);

/* A buffer in args->memory, NULL if it has no bytes or there is no memory yet. */
void *model_memory(const model_args *args, const model_plan *plan, model_buffer buffer);

/* Of a tensor, its values or gradients: MODEL_VALUES to MODEL_SECOND. */
void *model_tensor_memory(const model_args *args, const model_plan *plan, model_buffer buffer,
                          int64_t index);

/* Whether there is a loss scale: of f16, where a backward pass follows. */
int model_scales_loss(const model_args *args);

/* f32 for tf32: how elements are stored. */
kernel_dtype model_storage(kernel_dtype dtype);

/* random_normal_cpu or _cuda (random.h), on its default stream. */
typedef int model_fill_function(void *data, kernel_dtype dtype, int64_t count, float mean,
                                float stddev, uint64_t seed);

/* Fills all that a pass finds but tokens and targets. Parameters as GPT-2 starts:
 * 0.02 times normal numbers, of the layers that end a residual branch divided by
 * sqrt(2 layers), norms' weights around 1 (Radford et al., 2019, section 2.3); here
 * biases too, so that one that is forgotten shows. Rows that pad the table
 * are 0. Narrow parameters are their master weights rounded. 0 or what fill gave. */
int model_fill(const model_args *args, model_fill_function *fill, uint64_t seed);

/* Tokens of all micro-batches and behind them as many targets: each sequence's are its
 * tokens, one further on. rows: 2 * model_step_rows, on the host. 0 or a code. */
int model_fill_tokens(const model_args *a, uint64_t seed, int32_t *rows);

/* ---- ops --------------------------------------------------------------------------- */

typedef enum model_op_kind {
    MODEL_OP_PART,
    MODEL_OP_EMBEDDING,
    MODEL_OP_EMBEDDING_GRADIENT,
    MODEL_OP_LOSS,          /* loss.h's forward */
    MODEL_OP_LOSS_GRADIENT, /* its forward_backward */
    MODEL_OP_MEAN,
    MODEL_OP_ACCUMULATE,
    MODEL_OP_SCALE_LOSS, /* of f16, before the loss */
    MODEL_OP_CLIP,
    MODEL_OP_UNSCALE, /* of f16, after the norm */
    MODEL_OP_ADAMW
} model_op_kind;

/* mean = sum of values[count] / count */
typedef struct model_mean {
    const float *values;
    int64_t count;
    float *mean;
} model_mean;

/* sums = gradients (is_first), sums += gradients, or gradients += sums (is_last): the
 * sums are f32, and what the last micro-batch leaves is where one batch's would be. */
typedef struct model_accumulate {
    kernel_dtype dtype; /* of gradients */
    int64_t count;
    void *gradients;
    float *sums;
    int is_first, is_last;
} model_accumulate;

/* tool: equal for ops that differ in memory only, below MODEL_TOOLS. */
typedef struct model_op {
    model_op_kind kind;
    model_component component;
    unsigned phase;
    int again; /* forward, run again by a backward pass */
    int64_t layer; /* -1 outside of the blocks */
    int64_t micro; /* batch of the step, from 0 */
    int tool;
    union {
        part_args part;
        embedding_forward_args embedding;
        embedding_backward_args embedding_gradient;
        loss_args loss;
        model_mean mean;
        model_accumulate accumulate;
        optimizer_scale_loss_args scale_loss;
        optimizer_clip_args clip;
        optimizer_unscale_args unscale;
        optimizer_adamw_args adamw;
    } as;
} model_op;

enum { MODEL_TOOLS = BLOCK_FORWARD_PARTS + BLOCK_BACKWARD_PARTS + 14 };

typedef struct model_ops {
    model_op *list;
    int64_t count, room;
    optimizer_tensor *tensors; /* what clip and adamw point at */
} model_ops;

/* The ops that args name, in their order. KERNEL_OK, KERNEL_ERROR_ARGUMENT or
 * KERNEL_ERROR_MEMORY; model_ops_destroy also takes one of zeros. */
int model_ops_create(const model_args *args, model_ops *ops);
void model_ops_destroy(model_ops *ops);

/* "qkv", "down_input", "adamw": what an op is called. */
const char *model_op_name(const model_op *op);

/* The block_backward_part that an op is; -1: none. */
int model_op_backward_part(const model_op *op);

/* Tells args->watch, if there is one, that op `index` of the list is enqueued next, and
 * that it has been. */
void model_watch_begin(const model_args *args, const model_ops *ops, int64_t index);
void model_watch_end(const model_args *args, const model_ops *ops, int64_t index);

/* ---- work -------------------------------------------------------------------------- */

/* Operations of the products that a phase needs: a forward pass 2 for each
 * weight and row (the head once, tied or not; the tables' look-ups none) and
 * block.h's causal attention, 2 tokens * width a row and layer; a backward pass
 * twice that. What recomputing adds is no work of the model's, nor are padding
 * rows. So a step has, of each row, 6 (weights + layers * tokens * width).
 * UINT64_MAX if the number does not fit, 0 for a shape that is not valid. */
uint64_t model_flops(const model_shape *shape, unsigned phases);

/* Of those what one component has in one phase: they add up to model_flops. */
uint64_t model_component_flops(const model_shape *shape, unsigned phase,
                               model_component component);

/* Compulsory traffic: the parameters read by forward and by backward, tokens,
 * targets, logits written where no loss follows; the gradients written; and
 * optimizer.h's bytes. Activations need not leave the chip. */
uint64_t model_bytes(const model_shape *shape, kernel_dtype dtype, unsigned phases);

/* ---- oracle ------------------------------------------------------------------------ */

/* The references of the operations composed, as in block.h: in double, what one
 * hands to the next rounded to f32. parameters: f32, one array a tensor.
 * gradients: NULL, or one array a tensor, overwritten. KERNEL_OK or
 * KERNEL_ERROR_MEMORY. */
int model_reference(const model_shape *shape, const float *const *parameters,
                    const int32_t *tokens, const int32_t *targets, double *loss,
                    double *const *gradients);

/* ---- variants ---------------------------------------------------------------------- */

/* adapts: 0 for variant `unfused`, for attention `naive` and `tiled` and for the
 * habit `mask`, 1 for the others. */
block_layout model_layout_cpu(const model_shape *shape, kernel_dtype dtype, int adapts);
block_layout model_layout_cuda(const model_shape *shape, kernel_dtype dtype, int adapts);

/* prepare and run take the same args: a state belongs to the memory that args
 * name. settings are read when run is called, by `graph` when it is prepared.
 * `recompute` is `best` for args that say so. Workspaces are aligned to 256. */
extern const kernel_table model_cpu;
extern const kernel_table model_cuda;

/* Of a state of model_cuda's `graph`: kernels, copies and fills that a run launches. */
uint64_t model_launches_cuda(const void *state);

/* What a habit costs: variants of a whole step (MODEL_STEP, all components) that leave
 * the same behind and differ in the habit, the better one last. Their args name the habit.
 * Each run is `steps` steps. */
typedef struct model_habit {
    const char *name, *why; /* a sentence: habit_why.h */
    int steps;
    int batch_ms; /* of a loader: how long it takes for a batch; else 0 */
    kernel_table table;
    double (*idle_us)(const void *state); /* of the last run, a step: how long the device had
                                             no input; NULL: not known */
} model_habit;

enum { MODEL_MOST_HABITS = 32 };

extern const model_habit model_habits_cpu[], model_habits_cuda[];
extern const int model_habits_cpu_count, model_habits_cuda_count;

#ifdef __cplusplus
}
#endif
#endif
