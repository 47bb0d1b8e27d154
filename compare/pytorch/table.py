"""The table at the end: a line for each case."""
from .rows import key_of
from .statistics import quantile


def print_table(rows, file):
    """A line for each case: the median over the runs, and how far they lie apart."""
    groups = {}
    for row in rows:
        if row["status"] == "ok":
            groups.setdefault(key_of(row), []).append(row)
    if not groups:
        return
    width = max(map(len, groups))
    print(f"{'case':{width}}  {'median us':>12}  {'range':>7}  {'GB/s':>8}  {'TFLOP/s':>8}  flags",
          file=file)
    for key, group in groups.items():
        medians = sorted(float(row["median_us"]) for row in group)
        median = quantile(medians, 0.5)
        gb_per_s = rate_text(group[0]["bytes"], median * 1e3)
        tflop_per_s = rate_text(group[0]["flops"], median * 1e6)
        print(f"{key:{width}}  {median:12.3f}  {(medians[-1] / medians[0] - 1) * 100:6.2f}%  "
              f"{gb_per_s:>8}  {tflop_per_s:>8}  {group[0]['flags']}", file=file)


def rate_text(amount, unit):
    rate = float(amount) / unit if amount else 0
    return f"{rate:.1f}" if rate >= 10 else f"{rate:.3g}" if amount else ""
