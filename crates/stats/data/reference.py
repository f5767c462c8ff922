#!/usr/bin/env python3
"""Writes reference.json, the reference values that `src/reference.rs` compares with.

Made once with scipy 1.17.1 and numpy 2.4.6 (pip install scipy); no test runs this.
An interval is found by inverting scipy's own exact test at every candidate for its end.
"""
import json
import numpy as np
import scipy
from scipy import special, stats

rng = np.random.default_rng(20151001)
EVERY = stats.PermutationMethod(n_resamples=10**7)


def tied(values):
    return np.round(values).tolist()


def one(values):
    x = np.array(values)
    left = x[x != 0]
    case = {"values": values}
    exact = len(left) <= 50
    ties = len(set(np.abs(left))) < len(left)
    how = {"method": "exact"} if exact and not ties else {"method": EVERY} if exact else {"method": "asymptotic", "correction": True}
    case["function"] = f"scipy.stats.wilcoxon, {how['method'] if isinstance(how['method'], str) else 'PermutationMethod'}"
    case["p_value"] = stats.wilcoxon(left, **how).pvalue
    greater = stats.wilcoxon(left, alternative="greater", **how)
    case["p_above"], case["statistic"] = greater.pvalue, greater.statistic
    if 2 <= len(x) <= 16:
        flipped = stats.permutation_test((x,), np.sum, permutation_type="samples", n_resamples=10**6)
        case["sign_flip"] = flipped.pvalue
    walsh = np.array([(x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x))])
    case["estimate"] = np.median(walsh)
    if len(x) <= 50 and len(set(walsh)) == len(walsh):
        # The closed interval of centres that the exact test of either side does not reject.
        at = np.sort(walsh)
        beyond = lambda centre, side: stats.wilcoxon(x - centre, alternative=side, method="exact").pvalue
        kept_low = [c for c, e in zip(at, np.diff(at, prepend=at[0] - 1)) if beyond(c - e / 2, "greater") <= 0.025]
        kept_high = [c for c, e in zip(at, np.diff(at, append=at[-1] + 1)) if beyond(c + e / 2, "less") <= 0.025]
        case["low"] = max(kept_low) if kept_low else None
        case["high"] = min(kept_high) if kept_high else None
    return case


def two(a, b):
    x, y = np.array(a), np.array(b)
    ties = len(set(a + b)) < len(a + b)
    exact = len(a + b) <= 50
    case = {"a": a, "b": b}
    if exact and ties:
        case["function"] = "scipy.stats.permutation_test of mannwhitneyu's statistic"
        u = lambda one, other, axis: stats.mannwhitneyu(one, other, axis=axis, method="asymptotic").statistic
        case["p_value"] = stats.permutation_test((y, x), u, vectorized=True, n_resamples=10**6).pvalue
        case["statistic"] = stats.mannwhitneyu(y, x).statistic
    else:
        how = "exact" if exact else "asymptotic"
        case["function"] = f"scipy.stats.mannwhitneyu, {how}"
        found = stats.mannwhitneyu(y, x, method=how)
        case["p_value"], case["statistic"] = found.pvalue, found.statistic
    shifts = (y[:, None] - x[None, :]).ravel()
    case["estimate"] = np.median(shifts)
    if exact and not ties:
        at = np.sort(shifts)
        beyond = lambda shift, side: stats.mannwhitneyu(y - shift, x, alternative=side, method="exact").pvalue
        kept_low = [c for c, e in zip(at, np.diff(at, prepend=at[0] - 1)) if beyond(c - e / 2, "greater") <= 0.025]
        kept_high = [c for c, e in zip(at, np.diff(at, append=at[-1] + 1)) if beyond(c + e / 2, "less") <= 0.025]
        case["low"] = max(kept_low) if kept_low else None
        case["high"] = min(kept_high) if kept_high else None
    case["t_test"] = stats.ttest_ind(x, y).pvalue
    return case


ones = [rng.normal(0.4, 1, n).tolist() for n in (1, 5, 6, 7, 10, 13, 16, 24, 50, 51, 120)]
ones += [tied(rng.normal(0.5, 2, n)) for n in (8, 10, 13, 80)]
twos = [(rng.normal(0, 1, n).tolist(), rng.normal(0.5, 1, m).tolist()) for n, m in ((1, 4), (3, 4), (5, 5), (8, 12), (24, 26), (30, 40))]
twos += [(tied(rng.normal(0, 2, n)), tied(rng.normal(1, 2, m))) for n, m in ((4, 5), (7, 8), (40, 30))]
quantiles = [1e-300, 1e-12, 1e-5, 0.001, 0.02, 0.07, 0.08, 0.3, 0.5, 0.6, 0.93, 0.975, 0.9995]
deviates = [-37.0, -9.0, -3.0, -1.0, 0.0, 0.5, 2.0, 6.0]
students = [(t, f) for t in (-3.0, 0.0, 0.1, 1.0, 2.5, 10.0, 40.0) for f in (0.5, 1.0, 2.0, 7.3, 30.0, 1000.0)]
student_quantiles = [(q, f) for q in (0.0005, 0.025, 0.4, 0.9, 0.975, 0.9999) for f in (1.0, 2.0, 4.5, 30.0, 500.0)]
print(json.dumps({
    "origin": f"scipy {scipy.__version__}, numpy {np.__version__}, by data/reference.py",
    "signed_rank": [one(values) for values in ones],
    "mann_whitney": [two(a, b) for a, b in twos],
    "normal_quantile": [[q, special.ndtri(q)] for q in quantiles],
    "normal_probability": [[z, special.ndtr(z)] for z in deviates],
    "student_tail": [[t, f, stats.t.sf(t, f)] for t, f in students],
    "student_quantile": [[q, f, stats.t.ppf(q, f)] for q, f in student_quantiles],
}, indent=1))
