"""Writes the table of values that scipy and statsmodels give: `python oracle.py FILE`.

The ordinary tests compare with the stored table, so they need neither. Each entry names
one function of ours by its module, the arguments, and the numbers that it must give.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from scipy import special, stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import normal_sample_size_one_tail
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

Entry = tuple[str, list[Any], list[float]]

SCORES = [0.2, 0.95, 0.7, 0.7, 1.0, 0.35, 0.8, 0.65, 0.9, 0.1]
CLUSTERS = [1, 1, 1, 2, 2, 3, 4, 4, 4, 4]
DIFFERENCES = [
    [0.1, -0.2, 0.3, 0.25, 0.0, 0.4],
    [0.5, 0.5, 0.5, -0.5, 0.25],
    [-0.1, -0.2, -0.3, -0.4, -0.5, -0.6, 0.1, 0.05],
    [0.0, 0.0, 0.3],
]
COUNTS = [
    (0, 1),
    (1, 1),
    (0, 10),
    (10, 10),
    (5, 10),
    (9, 10),
    (1, 37),
    (50, 100),
    (99_000, 100_000),
]
DISCORDANT = [(6, 0), (5, 0), (3, 3), (10, 4), (25, 26), (60, 35), (700, 500), (50_500, 49_500)]
TABLES = [(40, 5, 10, 45), (90, 4, 3, 3), (10, 30, 25, 35), (20, 0, 1, 30)]


def alpha(level: float) -> float:
    """Our intervals take 1.96 for 95 %, as printed tables do."""
    return float(2 * stats.norm.sf(1.96)) if level == 0.95 else 1 - level


def floats(values: Any) -> list[float]:
    return [float(value) for value in values]


def distributions() -> Iterator[Entry]:
    shapes = [(0.5, 0.5), (2, 3), (50.5, 0.5), (1000, 900), (50_000, 50_001), (3, 200_000)]
    for (a, b), x in product(shapes, (1e-5, 0.3, 0.499, 0.5, 0.9)):
        yield "distributions.beta_cdf", [x, a, b], [float(special.betainc(a, b, x))]
    for (a, b), p in product(shapes, (0.025, 0.5, 0.9)):
        yield "distributions.beta_quantile", [p, a, b], [float(special.betaincinv(a, b, p))]
    for p, df in product((1e-9, 0.025, 0.3, 0.9, 0.995), (1, 2, 9, 99, 100_000)):
        yield "distributions.t_quantile", [p, df], [float(stats.t.ppf(p, df))]
    for t, df in product((0.0, 0.5, 2.2, -9.0), (1, 7, 99_999)):
        yield "distributions.t_two_sided", [t, df], [float(2 * stats.t.sf(abs(t), df))]
    for k, n, p in ((0, 5, 0.3), (3, 10, 0.5), (49_900, 100_000, 0.5), (1100, 10_000, 0.1)):
        yield "distributions.binomial_cdf", [k, n, p], [float(stats.binom.cdf(k, n, p))]


def proportions() -> Iterator[Entry]:
    for (k, n), level in product(COUNTS, (0.8, 0.95, 0.99)):
        wilson = proportion_confint(k, n, alpha(level), method="wilson")
        yield "proportions.wilson", [k, n, level], [k / n, *floats(wilson)]
        exact = proportion_confint(k, n, 1 - level, method="beta")
        yield "proportions.clopper_pearson", [k, n, level], [k / n, *floats(exact)]


def means() -> Iterator[Entry]:
    centre = sum(SCORES) / len(SCORES)
    for level in (0.8, 0.95, 0.99):
        test = stats.ttest_1samp(SCORES, 0).confidence_interval(level)
        yield "means.student_t", [SCORES, level], [centre, float(test.low), float(test.high)]
    fit = OLS(SCORES, [1.0] * len(SCORES)).fit(
        cov_type="cluster", cov_kwds={"groups": CLUSTERS}, use_t=True
    )
    yield "means.clustered_error", [SCORES, CLUSTERS], floats(fit.bse)
    yield "means.clustered_t", [SCORES, CLUSTERS], [centre, *floats(fit.conf_int()[0])]


def paired() -> Iterator[Entry]:
    for lost, gained in DISCORDANT:
        table = [[0, lost], [gained, 0]]
        exact = mcnemar(table, exact=True).pvalue
        yield "paired.mcnemar_exact", [lost, gained], [float(exact)]
        if lost != gained:
            corrected = mcnemar(table, exact=False, correction=True).pvalue
            yield "paired.mcnemar_corrected", [lost, gained], [float(corrected)]
    for values in DIFFERENCES:
        flipped = stats.permutation_test(
            (values,), lambda x: x.mean(), permutation_type="samples", n_resamples=10**6
        )
        yield "paired.permutation", [values], [float(flipped.pvalue)]
        yield "paired.paired_t", [values], [float(stats.ttest_1samp(values, 0).pvalue)]
    for p_values in ([0.01, 0.04, 0.03, 0.005], [0.5, 0.5], [0.001, 0.9, 0.02, 0.02, 0.3]):
        adjusted = multipletests(p_values, method="holm")[1]
        yield "paired.holm", [p_values], floats(adjusted)


def newcombe() -> Iterator[Entry]:
    """Runs that are not correlated give the interval of independent samples; then some that are."""
    for both, lost, gained, neither in ((30, 10, 15, 5), (8, 4, 4, 2), (64, 16, 16, 4)):
        n = both + lost + gained + neither
        limits = confint_proportions_2indep(
            both + gained, n, both + lost, n, method="newcomb", alpha=alpha(0.95)
        )
        arguments = [both, lost, gained, neither]
        yield "paired.newcombe", [arguments], [(gained - lost) / n, *floats(limits)]
    for arguments in (
        [36, 12, 2, 0],
        [36, 14, 0, 0],
        [14, 5, 0, 22],
        [1, 1, 7, 12],
        [70, 3, 9, 18],
    ):
        yield "paired.newcombe", [arguments], joined_limits(*arguments)


def joined_limits(both: int, lost: int, gained: int, neither: int) -> list[float]:
    """Method 10 as its paper defines it, on the Wilson limits of statsmodels."""
    n = both + lost + gained + neither
    old, new = both + lost, both + gained
    limits = [proportion_confint(k, n, alpha(0.95), method="wilson") for k in (old, new)]
    (old_low, old_high), (new_low, new_high) = (floats(pair) for pair in limits)
    excess: float = both * neither - lost * gained
    if 0 <= excess <= n / 2:
        excess = 0
    elif excess > n / 2:
        excess -= n / 2
    scale = float(old * (n - old) * new * (n - new)) ** 0.5
    phi = excess / scale if scale else 0.0
    below, above = (new / n - new_low, old_high - old / n), (new_high - new / n, old / n - old_low)
    reach = [(a * a + b * b - 2 * phi * a * b) ** 0.5 for a, b in (below, above)]
    difference = (gained - lost) / n
    return [difference, difference - reach[0], difference + reach[1]]


def planning() -> Iterator[Entry]:
    for difference, variance in ((0.03, 1 / 9), (0.05, 0.25), (-0.1, 1.0)):
        n = normal_sample_size_one_tail(difference, 0.8, 0.025, variance**0.5)
        yield "planning.score_cases_needed", [difference, [variance]], [float(-(-n // 1))]
    for n, discordant, difference in ((50, 0.2, 0.17), (120, 0.25, 0.1), (400, 0.1, 0.05)):
        power = sum(
            float(stats.binom.pmf(k, n, discordant)) * significant(k, discordant, difference)
            for k in range(n + 1)
        )
        yield "planning.paired_power", [n, discordant, difference], [power]


def significant(count: int, discordant: float, difference: float) -> float:
    """The chance that this many discordant pairs give p < 0.05."""
    chance = 0.0
    for lost in range(count + 1):
        table = [[0, lost], [count - lost, 0]]
        equal = 2 * lost == count
        if not equal and mcnemar(table, exact=count < 50).pvalue < 0.05:
            worse = (discordant + difference) / (2 * discordant)
            chance += float(stats.binom.pmf(lost, count, worse))
    return chance


def calibration() -> Iterator[Entry]:
    for right, let_in, missed, refused in TABLES:
        for level in (0.9, 0.95):
            found = cohens_kappa([[right, missed], [let_in, refused]])
            reach = float(stats.norm.isf(alpha(level) / 2)) * float(found.std_kappa)
            value = float(found.kappa)
            limits = [max(value - reach, -1.0), min(value + reach, 1.0)]
            arguments = [[right, let_in, missed, refused], level]
            yield "calibration.kappa", arguments, [value, *limits]


def sequential() -> Iterator[Entry]:
    """The mixture is a beta-binomial; one side is the same over half of the biases."""
    for lost, gained in ((0, 0), (7, 0), (3, 9), (40, 22), (5000, 5100)):
        log = float(stats.betabinom.logpmf(lost, lost + gained, 0.5, 0.5))
        log -= float(stats.binom.logpmf(lost, lost + gained, 0.5))
        yield "sequential.log_e_value", [lost, gained], [log]
        above = float(stats.beta.logsf(0.5, lost + 0.5, gained + 0.5))
        one_sided = log + above + float(special.log1p(1.0))
        yield "sequential.log_e_value", [lost, gained, "lost"], [one_sided]


def bradley_terry() -> Iterator[Entry]:
    """A logistic regression with one column a target; ties are half a win for each."""
    tables: list[list[list[float]]] = [
        [[0, 3], [1, 0]],
        [[0, 12.5, 7], [3.5, 0, 9], [5, 2, 0]],
        [[0, 1, 0.5, 20], [1, 0, 3, 4], [0.5, 30, 0, 2], [1, 1, 1, 0]],
    ]
    for wins in tables:
        targets = range(len(wins))
        rows, scores, weights = [], [], []
        for a in targets:
            for b in range(a):
                rows.append([float(i == a) - float(i == b) for i in targets[1:]])
                scores.append(wins[a][b] / (wins[a][b] + wins[b][a]))
                weights.append(wins[a][b] + wins[b][a])
        fit = GLM(scores, rows, family=Binomial(), var_weights=weights).fit(tol=1e-14, maxiter=200)
        found = [0.0, *floats(fit.params)]
        centre = sum(found) / len(found)
        yield "bradley_terry.strengths", [wins], [value - centre for value in found]


PARTS: list[Callable[[], Iterator[Entry]]] = [
    distributions,
    proportions,
    means,
    paired,
    newcombe,
    planning,
    calibration,
    sequential,
    bradley_terry,
]


def main(file: Path) -> None:
    entries = [entry for part in PARTS for entry in part()]
    rows = ",\n".join(
        json.dumps({"function": name, "arguments": arguments, "value": value})
        for name, arguments, value in entries
    )
    file.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
