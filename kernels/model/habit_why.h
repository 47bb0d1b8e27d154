/*
 * habit_why.h - a sentence for each habit of habits.c and habits.cu, and of the
 * groups of suites/model_groups.c: what the worse one does
 * to a step. The table of habits (scripts/habits.sh) prints those of the five that
 * cost most, whose numbers are measured; here stands no number that was.
 */
#ifndef MODEL_HABIT_WHY_H
#define MODEL_HABIT_WHY_H

#define MODEL_WHY_optimizer \
    "Each operation of each tensor is a launch of its own, and most tensors are too small to " \
    "fill the device."
#define MODEL_WHY_norm \
    "Norms tensor by tensor are small pieces of work in a row, and each that is copied to the " \
    "host waits until the device has nothing to do."
#define MODEL_WHY_loss \
    "Reading the loss waits for the step, so that the next one's first launches find an idle " \
    "device."
#define MODEL_WHY_graph_loss \
    "A graph makes the next step's launch short, but a host that waits for the loss still " \
    "comes too late with it."
#define MODEL_WHY_zero \
    "Zeroing is a pass over the gradients' memory, and taking memory anew asks the driver, " \
    "which waits for the device."
#define MODEL_WHY_attention \
    "Scores that are written to memory move bytes that grow with the square of the context."
#define MODEL_WHY_inputs \
    "A batch that is made and copied within the step is time in which the host launches " \
    "nothing."
#define MODEL_WHY_loader \
    "A batch that takes longer than a step makes the device wait for the rest, unless several " \
    "are made at a time."
#define MODEL_WHY_mask \
    "A mask in memory is read for every score, and one that is made in each step is written " \
    "each time, too."
#define MODEL_WHY_launches \
    "The host needs microseconds for each of hundreds of launches, and kernels that are " \
    "shorter wait for it."
#define MODEL_WHY_products \
    "The library's first proposal for a product is a guess from its sizes, and another of its " \
    "algorithms is faster."
#define MODEL_WHY_evaluation \
    "An evaluation is forward passes in which nothing is learned."
#define MODEL_WHY_checkpoint \
    "A file that is written in the loop lets the device wait for the disk."
#define MODEL_WHY_precision \
    "Products of f32 do not run on the tensor cores at all, and what is stored in two bytes " \
    "moves in half the time."
#define MODEL_WHY_accumulation \
    "A batch of one sequence has a product's weights read for few rows, and its gradients are " \
    "a pass over memory each time."
#define MODEL_WHY_activations \
    "Recomputing runs the blocks forward once more, which is a third of their products on " \
    "top."

/* Batches of an evaluation. */
enum { MODEL_EVALUATED = 10 };

/* A row of a table of habits. */
#define MODEL_HABIT(name, ...) {#name, MODEL_WHY_##name, __VA_ARGS__}

#endif
