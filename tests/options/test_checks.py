"""Options that are at odds with one another."""

from __future__ import annotations

import pytest

from onlineauto.errors import OptionError
from onlineauto.features.options import unescape
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")


@pytest.mark.parametrize(
    "words",
    [
        r"-q a\\x20 -q ab --cubic a\\x20\\x3a --interactions abcd --interactions ::",
        "--experimental_full_name_interactions 'user|article' ':|:' 'a|b|:'",
        "--loss_function quantile --quantile_tau 0.9",
        "--loss_function expectile --expectile_q 0.5",
        "--loss_function logistic --logistic_min 0 --logistic_max 1",
        "--min_prediction 0 --max_prediction 0",
        "--cb 3 --clip_p 0.1",
        "--cb_explore 3 --cb_type dr --epsilon 0.2",
        "-r scores --link logistic",
        "-P 1",
        "-P 2.",
        "-P 1.01",
    ],
)
def test_options_that_go_together(words: str) -> None:
    assert REGISTRY.parse(words).warnings == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "-q abc",
            "--quadratic 'abc' has 3 characters and needs two namespaces (every word up to the next option",
        ),
        ("-q a", "--quadratic 'a' has 1 characters and needs two namespaces"),
        ("-q ab events.txt", "--quadratic 'events.txt' has 10 characters and needs two namespaces"),
        (r"-q a\\x2", r"--quadratic 'a\\x2' has 4 characters"),
        ("-q aéb", "--quadratic 'aéb' has 3 characters"),
        ("--cubic ab", "--cubic 'ab' has 2 characters and needs three namespaces"),
        ("--interactions a", "--interactions 'a' has 1 characters and needs two namespaces or more"),
        (
            "--experimental_full_name_interactions user",
            "--experimental_full_name_interactions 'user' needs two names or more with '|' between them",
        ),
        (
            "--experimental_full_name_interactions 'user|'",
            "--experimental_full_name_interactions 'user|' has an empty name",
        ),
        (
            "--experimental_full_name_interactions 'user|a:'",
            "--experimental_full_name_interactions 'user|a:': ':' stands for any namespace",
        ),
        ("--quantile_tau 0.9", "--quantile_tau is for --loss_function quantile, but the loss is squared"),
        ("--expectile_q 0.2", "--expectile_q is for --loss_function expectile, but the loss is squared"),
        (
            "--logistic_min -1 --loss_function hinge",
            "--logistic_min is for --loss_function logistic, but the loss is hinge",
        ),
        ("--logistic_max 1", "--logistic_max is for --loss_function logistic, but the loss is squared"),
        (
            "--loss_function expectile",
            "--loss_function expectile needs --expectile_q, a number above 0 and at most 0.5",
        ),
        (
            "--loss_function logistic --logistic_min 1",
            "--logistic_min 1.0 has to be less than --logistic_max 1.0",
        ),
        ("--min_prediction 2 --max_prediction 1", "--min_prediction 2.0 is above --max_prediction 1.0"),
        ("--cb 3 --cb_adf", "--cb and --cb_adf exclude each other"),
        ("--cb_explore 3 --cb_explore_adf", "--cb_explore and --cb_explore_adf exclude each other"),
        ("--cb_adf --cb_explore_adf", "--cb_adf and --cb_explore_adf exclude each other"),
        ("--cb_adf -r scores", "--raw_predictions is for single-line learning, not for --cb_adf"),
        (
            "--automl --cb_adf --search epsilon",
            "--search cannot have epsilon: logged rewards always favour less exploration, because",
        ),
        ("--automl --search cb_type", "--search cannot have cb_type on single lines, which log no action"),
        ("--automl --cb_adf --search lr", "--search cannot be lr; it takes some of interactions, "),
        ("--automl --cb_adf --search ,", "--search cannot be ,; it takes some of interactions, "),
        ("--automl --cb_adf --members wavy", "--members cannot be wavy; it takes some of features, waves, "),
        (
            "--automl --cb_adf --members waves,layer",
            "--members cannot have layer without features, from whose ",
        ),
        ("--automl --champion_test reward", "--champion_test cannot be reward on single lines: they log no"),
        (
            "--automl --cb_adf --estimator robust --champion_test loss",
            "--champion_test has no effect with --estimator robust, which compares a bound",
        ),
        (
            "--automl --cb_adf --estimator robust --cost_range 0,1",
            "--cost_range has no effect with --estimator robust",
        ),
        (
            "--automl --cb_adf --oracle_type one_diff --search learning_rate",
            "--search has no effect with --oracle_type one_diff",
        ),
        (
            "--automl --cb_adf --oracle_type one_diff --feature_cost 0.1",
            "--feature_cost has no effect with --oracle_type one_diff",
        ),
        ("--automl --cb_adf --predict_with mix", "--predict_with mix is for single lines; bandits have"),
        ("--automl --cb_adf --vw_exact --min_prob 0.1", "--min_prob has no effect with --vw_exact, which"),
        (
            "--automl --cb_adf --automl_significance_level 1.5",
            "--automl_significance_level 1.5 is not a probability below 1",
        ),
        ("-P 0", "--progress cannot be 0; it takes a number of events, such as 1000, or a factor above 1"),
        ("-P 1.0", "--progress cannot be 1.0;"),
        ("-P often", "--progress cannot be often;"),
        ("-P .", "--progress cannot be .;"),
        ("-P 1e3", "--progress cannot be 1e3;"),
    ],
)
def test_options_at_odds(words: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("kind", ["--cb_explore 3", "--cb_explore_adf", "--ccb_explore_adf"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rnd 2", "--rnd is not reproduced by --vw_exact: Vowpal Wabbit draws the guesses of members by"),
        (
            "--experimental_full_name_interactions a|b",
            "--experimental_full_name_interactions is not reproduced by --vw_exact: Vowpal Wabbit crosses",
        ),
    ],
)
def test_what_exact_mode_does_not_have(kind: str, words: str, message: str) -> None:
    assert REGISTRY.parse(f"{kind} {words}").warnings == ()
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(f"{kind} {words} --vw_exact")
    assert str(caught.value).startswith(message)


EXPLORING = "--cb_explore or --cb_explore_adf or --ccb_explore_adf"


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (
            "--epsilon 0.1",
            "--epsilon has no effect without --cb_explore or --cb_explore_adf or --ccb_explore_adf",
        ),
        (
            "--first_only --cb_adf",
            "--first_only has no effect without --cb_explore or --cb_explore_adf or --ccb_explore_adf",
        ),
        ("--rank_all", "--rank_all has no effect without --cb_adf"),
        ("--search learning_rate --cb_adf", "--search has no effect without --automl"),
        (
            "--clip_p 0.1",
            f"--clip_p has no effect without --cb or --cb_adf or {EXPLORING}",
        ),
    ],
)
def test_options_without_effect(words: str, warning: str) -> None:
    assert REGISTRY.parse(words).warnings == (warning,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab", b"ab"),
        (r"\x20", b" "),
        (r"a\x3A\x7cb", b"a:|b"),
        (r"\xff", b"\xff"),
        ("é", b"\xc3\xa9"),
        (r"\x2", rb"\x2"),
        (r"\xzz20", rb"\xzz20"),
        (r"\\x20", b"\\ "),
    ],
)
def test_hexadecimal_bytes(text: str, expected: bytes) -> None:
    assert unescape(text) == expected
