"""Types of the keyword arguments that are options: ``Options``, and ``LearnerOptions`` for `AutoML`.

Generated, by ``python -m tools.generate``.

None is as if the option were not given. Short names, and options that other packages add, are not known here:
pass them in a ``dict[str, Any]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

Word: TypeAlias = "str | float | PathLike[str]"
"""A word of the command line; numbers and paths are converted to words."""


class LearnerOptions(TypedDict, total=False):
    """Options that `AutoML` and the other models accept as ``**options``."""

    # Input
    no_stdin: bool | None
    compressed: bool | None
    json: bool | None
    dsjson: bool | None
    chain_hash: bool | None
    columns: Word | None
    strict_parse: bool | None
    missing_probability: Word | None
    examples: int | None

    # Output
    quiet: bool | None

    # Run
    testonly: bool | None
    passes: int | None
    holdout_off: bool | None
    holdout_period: int | None
    holdout_after: int | None
    early_terminate: int | None
    replay: Word | None

    # Features
    hash: Word | None
    hash_seed: int | None
    names: Word | None
    name_columns: Word | Sequence[Word] | None
    ignore: Word | Sequence[Word] | None
    ignore_linear: Word | Sequence[Word] | None
    keep: Word | Sequence[Word] | None
    ngram: Word | Sequence[Word] | None
    skips: Word | Sequence[Word] | None
    lags: int | None
    noconstant: bool | None
    constant: float | None
    quadratic: Word | Sequence[Word] | None
    cubic: Word | Sequence[Word] | None
    interactions: Word | Sequence[Word] | None
    experimental_full_name_interactions: Word | Sequence[Word] | None
    permutations: bool | None
    max_crossed: int | None
    leave_duplicate_interactions: bool | None

    # Gradient descent
    learning_rate: float | None
    power_t: float | None
    initial_t: float | None
    decay_learning_rate: float | None
    initial_weight: float | None
    sgd: bool | None
    adaptive: bool | None
    normalized: bool | None
    invariant: bool | None
    l1: float | None
    l2: float | None
    min_prediction: float | None
    max_prediction: float | None

    # Loss and prediction
    loss: Word | None
    quantile_tau: float | None
    expectile_q: float | None
    logistic_min: float | None
    logistic_max: float | None
    link: Word | None
    binary: bool | None

    # Contextual bandit
    cb: int | None
    cb_adf: bool | None
    cb_type: Word | None
    clip_p: float | None
    keep_unrewarded: float | None
    rank_all: bool | None

    # Exploration
    cb_explore: int | None
    cb_explore_adf: bool | None
    epsilon: float | None
    first_only: bool | None

    # Exploration: first
    first: int | None

    # Exploration: softmax
    softmax: bool | None
    lambda_: float | None

    # Exploration: SquareCB
    squarecb: bool | None
    gamma_scale: float | None
    gamma_exponent: float | None
    elim: bool | None

    # Exploration: scaled SquareCB
    scaled_squarecb: bool | None

    # Exploration: RegCB
    regcb: bool | None
    regcbopt: bool | None

    # Exploration: plausible costs, for RegCB and --elim
    mellowness: float | None
    cb_min_cost: float | None
    cb_max_cost: float | None

    # Exploration: synthetic cover
    synthcover: bool | None
    synthcoverpsi: float | None
    synthcoversize: int | None

    # Exploration: bagging
    bag: int | None
    greedify: bool | None

    # Exploration: online cover
    cover: int | None
    psi: float | None
    nounif: bool | None

    # Exploration: random network distillation
    rnd: int | None
    rnd_alpha: float | None
    rnd_invlambda: float | None

    # Exploration: decaying ε
    epsilon_decay: bool | None
    model_count: int | None
    initial_epsilon: float | None
    constant_epsilon: bool | None
    challenger_epsilon: bool | None
    min_scope: int | None
    shift_model_bounds: int | None
    min_champ_examples: int | None
    epsilon_decay_significance_level: float | None
    bonferroni_denominator: int | None

    # Exploration: sampling
    cb_sample: bool | None

    # Exploration: slots
    ccb_explore_adf: bool | None
    all_slots_loss: bool | None
    ccb_no_slot_index: bool | None

    # AutoML
    oracle_type: Word | None
    search: Word | Sequence[Word] | None
    interaction_type: Word | None
    default_lease: int | None
    priority_type: Word | None
    priority_challengers: int | None
    estimator: Word | None
    champion_test: Word | None
    predict_with: Word | None
    member_budget: float | None
    cost_range: Word | Sequence[Word] | None
    min_prob: float | None
    on_drift: Word | None
    keep_configs: bool | None
    waiting_overtakes: bool | None
    feature_cost: float | None
    automl_significance_level: float | None
    fixed_significance_level: bool | None
    tol_x: float | None
    reward_as_cost: bool | None
    debug_reversed_learn: bool | None

    # Ensemble
    members: Word | Sequence[Word] | None

    # Vowpal Wabbit
    vw_exact: bool | None


class Options(LearnerOptions, total=False):
    """All options, by name and alias."""

    # Input
    data: Word | Sequence[Word] | None

    # Output
    predictions: Word | None
    raw_predictions: Word | None
    progress: Word | None
    audit: bool | None
    driver_output_off: bool | None
    extra_metrics: Word | None
    journal: Word | None
    version: bool | None
    help: bool | None

    # Models
    final_regressor: Word | None
    initial_regressor: Word | Sequence[Word] | None
    save_every: int | None
    resume: bool | None
    predict_only_model: bool | None
    predict_only_ensemble: bool | None
    readable_model: Word | None
    invert_hash: Word | None
    hexfloat_weights: bool | None
    preserve_performance_counters: bool | None
    base: Word | None
    save_resume: bool | None

    # Inspect
    format: Word | None
    largest: int | None

    # Run
    cache: bool | None
    cache_file: Word | None
    kill_cache: bool | None
    seed: int | None
    random_seed: int | None

    # Several workers
    workers: int | None
    servers: int | None
    partitions: int | None
    backend: Word | None

    # Features
    hash_bits: int | None
    bit_precision: int | None

    # Loss and prediction
    loss_function: Word | None

    # AutoML
    live_configs: int | None
    automl: int | None
    lease: int | None
    verbose_metrics: bool | None
