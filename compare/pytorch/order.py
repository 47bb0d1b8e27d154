"""The order of cases in a run: the suites'."""

MASK64 = 0xFFFFFFFFFFFFFFFF


def splitmix(state):
    """The next state and number of Steele, Lea and Flood's generator, OOPSLA 2014."""
    state = (state + 0x9E3779B97F4A7C15) & MASK64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return state, z ^ (z >> 31)


def shuffled(items, seed, run):
    """A permutation by the seed and the run (Fisher and Yates), gpubench.h's."""
    state, order = (seed * 1000003 + run) & MASK64, []
    for i, item in enumerate(items):
        state, number = splitmix(state)
        j = number % (i + 1)
        order.append(item)
        order[i], order[j] = order[j], item
    return order
