/*
 * optimizer.h - one step of an optimizer over a list of tensors, in place, and
 * the clipping of the gradients' norm before it.
 *
 * AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019,
 * algorithm 2, with the decay multiplied by the learning rate, as frameworks
 * do), at step t = 1, 2, ...:
 *
 *     g  = scale * gradient
 *     m  = beta1 m + (1 - beta1) g
 *     v  = beta2 v + (1 - beta2) g^2
 *     p  = (1 - learning_rate * weight_decay) p
 *          - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
 *
 * SGD with momentum (Sutskever et al., "On the importance of initialization
 * and momentum in deep learning", 2013, with the learning rate outside of the
 * buffer, as PyTorch has it):
 *
 *     b  = momentum b + scale * gradient
 *     p  = p - learning_rate * b
 *
 * Clipping (Pascanu, Mikolov and Bengio, "On the difficulty of training
 * recurrent neural networks", 2013, algorithm 1, over all tensors as one):
 *
 *     norm  = sqrt(sum of gradient^2)
 *     scale = min(1, max_norm / (norm + 1e-6))
 *
 * clip_norm computes both; what is left is a multiplication, which a step does
 * for nothing (gradient_scale), and which clip_scale does in a pass of its own.
 *
 * Dynamic loss scaling, for f16, whose smallest numbers most gradients are below
 * (Micikevicius et al., "Mixed precision training", 2018, section 3.2): the loss, and
 * so each gradient, is multiplied by `scale`; before clipping the norm is divided by it.
 * If the norm is infinite or NaN, a gradient is: the step moves nothing and is not
 * counted, and the scale is multiplied by `backoff`; after `interval` steps in a row
 * that moved, by `growth`. All of it is where the tensors are: no host reads it.
 */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor and its state, count elements each; any count, 0 included, and
 * any alignment that the element needs. f32: parameter and gradient are f32
 * and there is no master. f16, bf16: parameter and gradient are; master holds
 * the parameter in f32, is what the step updates, and parameter gets it
 * rounded. The moments are always f32. */
typedef struct optimizer_tensor {
    int64_t count;
    void *parameter;
    void *gradient;
    float *master; /* f16 and bf16 only */
    float *first;  /* m of AdamW, b of SGD */
    float *second; /* v of AdamW only */
} optimizer_tensor;

/* The list itself is host memory on both backends. */
typedef struct optimizer_list {
    const optimizer_tensor *tensors;
    int64_t count;
} optimizer_list;

typedef struct optimizer_adamw {
    float learning_rate, beta1, beta2, epsilon, weight_decay;
    int64_t step; /* t, from 1 */
} optimizer_adamw;

typedef struct optimizer_sgd {
    float learning_rate, momentum;
} optimizer_sgd;

/* The rule of a loss scale. */
typedef struct optimizer_scaling {
    float initial, growth, backoff;
    int32_t interval;
} optimizer_scaling;

/* 65536, 2, 0.5 and 2000: what PyTorch's GradScaler documents. */
extern const optimizer_scaling optimizer_usual_scaling;

/* Below it nothing is gained: a gradient that is infinite then is so without a scale. */
#define OPTIMIZER_LEAST_SCALE 1.0f

/* Where the tensors are. Starts as zeros but for scale and used. */
typedef struct optimizer_scaler {
    float scale; /* of the next step's loss */
    float used;  /* of the loss whose gradients there are */
    int32_t skips; /* 1: those are not finite */
    int32_t good;  /* steps that moved since the scale last changed */
    int32_t taken, skipped, skipped_in_row;
    float correction1, correction2; /* AdamW's 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t),
                                       t = taken */
} optimizer_scaler;

/* The loss's weight in each of `count` rows, of those that are averaged over `rows`:
 * scale / rows. */
typedef struct optimizer_scale_loss_args {
    optimizer_scaler *scaler;
    int64_t count, rows;
    float *weights;
} optimizer_scale_loss_args;

/* After clip_norm, whose *norm is divided by the scale in place; *gradient_scale is what
 * clips and unscales, 0 if the step is skipped. */
typedef struct optimizer_unscale_args {
    optimizer_scaling rule;
    float beta1, beta2; /* AdamW's */
    float max_norm;
    float *norm, *gradient_scale;
    optimizer_scaler *scaler;
} optimizer_unscale_args;

/* gradient_scale points at one f32 where the tensors are (device memory on the
 * GPU), or is NULL: 1. scaler, or NULL: whether the step moves anything and its t, in
 * place of settings.step. */
typedef struct optimizer_adamw_args {
    optimizer_list list;
    kernel_dtype dtype;
    optimizer_adamw settings;
    const float *gradient_scale;
    const optimizer_scaler *scaler;
} optimizer_adamw_args;

typedef struct optimizer_sgd_args {
    optimizer_list list;
    kernel_dtype dtype;
    optimizer_sgd settings;
    const float *gradient_scale;
} optimizer_sgd_args;

/* Of the tensors only count and gradient are used. clip_norm writes *norm and
 * *scale; clip_scale reads *scale and multiplies the gradients by it, in
 * place. A NaN or infinity among the gradients shows in *norm. */
typedef struct optimizer_clip_args {
    optimizer_list list;
    kernel_dtype dtype;
    float max_norm;
    float *norm, *scale;
} optimizer_clip_args;

/* The sum of the tensors' counts; INT64_MAX if it does not fit. */
int64_t optimizer_elements(const optimizer_list *list);

/* Compulsory traffic for so many elements:
 *   adamw       f32:  28 bytes: p, m, v read and written, gradient read
 *               f16, bf16: 28 bytes: master, m, v read and written (24), gradient
 *               read (2), parameter written (2)
 *   sgd         20 bytes either way: without the second moment's 8
 *   clip_norm   the gradient read: 4 or 2
 *   clip_scale  the gradient read and written: 8 or 4
 * UINT64_MAX if the number does not fit, 0 for a count that is not positive. */
uint64_t optimizer_adamw_bytes(int64_t elements, kernel_dtype dtype);
uint64_t optimizer_sgd_bytes(int64_t elements, kernel_dtype dtype);
uint64_t optimizer_clip_norm_bytes(int64_t elements, kernel_dtype dtype);
uint64_t optimizer_clip_scale_bytes(int64_t elements, kernel_dtype dtype);

/* Operations an element, each sum, product, quotient and root as one: adamw 15
 * (g 1; m 3; v 4; root, correction, epsilon, quotient 4; p 3), sgd 5, clip_norm
 * 2, clip_scale 1. */
uint64_t optimizer_adamw_flops(int64_t elements);
uint64_t optimizer_sgd_flops(int64_t elements);
uint64_t optimizer_clip_norm_flops(int64_t elements);
uint64_t optimizer_clip_scale_flops(int64_t elements);

/* The oracle, in double precision: one step of count elements, in place. The
 * settings are the f32 values that the variant under test got. Of a tensor
 * with a master, parameter is that. */
void optimizer_adamw_reference(const optimizer_adamw *settings, double gradient_scale,
                               int64_t count, const float *gradient, double *parameter,
                               double *first, double *second);
void optimizer_sgd_reference(const optimizer_sgd *settings, double gradient_scale, int64_t count,
                             const float *gradient, double *parameter, double *first);

/* The scale for a norm, and the squares' sum of count elements. */
double optimizer_clip_scale_reference(double norm, double max_norm);
double optimizer_square_sum_reference(int64_t count, const float *gradient);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, a list of no tensors and a step below 1. Variants that keep a
 * table of the tensors build it in prepare: what is then run must have the
 * same list, with the same pointers. Workspaces are aligned to 16 bytes. */
extern const kernel_table optimizer_adamw_cpu;
extern const kernel_table optimizer_adamw_cuda;
extern const kernel_table optimizer_sgd_cpu;
extern const kernel_table optimizer_sgd_cuda;
extern const kernel_table optimizer_clip_norm_cpu;
extern const kernel_table optimizer_clip_norm_cuda;
extern const kernel_table optimizer_clip_scale_cpu;
extern const kernel_table optimizer_clip_scale_cuda;
extern const kernel_table optimizer_scale_loss_cpu;
extern const kernel_table optimizer_scale_loss_cuda;
extern const kernel_table optimizer_unscale_cpu;
extern const kernel_table optimizer_unscale_cuda;

#ifdef __cplusplus
}
#endif
#endif
