"""The command line is read by Vowpal Wabbit's rules."""

from __future__ import annotations

import pytest

from onlineauto.errors import OptionError
from onlineauto.features.options import unescape
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

ROBUST, ONE_DIFF = "--automl --cb_adf --estimator robust", "--automl --cb_adf --oracle_type one_diff"
FULL_NAMES = "--experimental_full_name_interactions"
VW_ONLY = "is an option of Vowpal Wabbit that onlineauto does not have"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-q", "ab"], {"quadratic": ("ab",)}),
        (["-qab"], {"quadratic": ("ab",)}),
        (["--quadratic", "ab"], {"quadratic": ("ab",)}),
        (["--quadratic=ab"], {"quadratic": ("ab",)}),
        (["--quadratic=ab", "cd"], {"quadratic": ("ab", "cd")}),
        (["-q", "ab", "cd", "--quiet"], {"quadratic": ("ab", "cd"), "quiet": True}),
        (["-q", "ab", "-q", "cd"], {"quadratic": ("ab", "cd")}),
        (["-q", "::"], {"quadratic": ("::",)}),
        (["-q", "-x"], {"quadratic": ("-x",)}),
        (["-q", "a", "-"], None),
        (["--quadratic=-t"], {"quadratic": ("-t",)}),
        (["--ignore", "a", "-1"], {"ignore": ("a", "-1")}),
        (["-b18"], {"bit_precision": 18}),
        (["-b", "18"], {"bit_precision": 18}),
        (["-b", "18", "--bit_precision=18"], {"bit_precision": 18}),
        (["-P", "1.5"], {"progress": "1.5"}),
        (["-C", "-1e-3"], {"constant": -0.001}),
        (["-C-1e-3"], {"constant": -0.001}),
        (["--constant=-.5"], {"constant": -0.5}),
        (["--initial_weight", "+1."], {"initial_weight": 1.0}),
        (["-t"], {"testonly": True}),
        (["-t", "--testonly"], {"testonly": True}),
        (["events.txt", "-t"], {"data": ("events.txt",), "testonly": True}),
        (["-t", "events.txt"], {"data": ("events.txt",), "testonly": True}),
        (["-"], {"data": ("-",)}),
        (["-d", "-"], {"data": ("-",)}),
        (["-d", "a b"], {"data": ("a b",)}),
        (["-d", "--fresh"], {"data": ("--fresh",)}),
        (["--data=--quiet"], {"data": ("--quiet",)}),
        (["--quiet", "--", "--quiet"], {"data": ("--quiet",), "quiet": True}),
        (["a", "-d", "b", "a", "-t", "c"], {"data": ("a", "b", "a", "c"), "testonly": True}),
        (["--"], {}),
        ([], {}),
        (["--no_daemon", "a", "--log_level", "off", "--limit_output=3", "b"], {"data": ("a", "b")}),
        (["--sparse_weights", "--id", "x", "--ring_size", "-1", "--log_output", "-t"], {"testonly": True}),
    ],
)
def test_forms(words: list[str], expected: dict[str, object] | None) -> None:
    if expected is None:
        with pytest.raises(OptionError):
            REGISTRY.parse(words)
        return
    configuration = REGISTRY.parse(words)
    assert {name: configuration.get(name) for name in configuration.supplied} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-tq", "ab"], "-t is a switch and takes no value, but 'q' is attached to it"),
        (["--testonly=1"], "--testonly is a switch and takes no value, but '1' is attached to it"),
        (["--epsilon="], "--epsilon= has nothing after the ="),
        (["--epsilon"], "--epsilon takes a value, but it is the last word"),
        (["-p", "--quiet"], "-p takes a value, but the option --quiet follows it"),
        (["-q", "-t"], "-q takes a value, but the option -t follows it"),
        (["-b", "18", "-b", "19"], "--bit_precision is given as 18 and as 19"),
        (["-l", "0.1", "-l", "0.2"], "--learning_rate is given as 0.1 and as 0.2"),
        (["--epsilom", "3"], "unknown option --epsilom; did you mean --epsilon?"),
        (["--loss-function", "hinge"], "unknown option --loss-function; did you mean --loss_function?"),
        (["--wqzx=1"], "unknown option --wqzx; `onlineauto learn --help` lists them all"),
        (["-z"], "unknown option -z; `onlineauto learn --help` lists them all"),
        (["--affix", "2"], f"--affix {VW_ONLY}"),
        (
            ["--ngram", "a"],
            "--ngram 'a' is not a number up to 99, such as 2, or a2 for namespaces that begin with a",
        ),
        (["--ngram", "9", "--skips", "9"], "--ngram 9 with --skips 9 gives more than 1000 features per word"),
        (["--skips", "1"], "--skips leaves out words of n-grams: give --ngram, too"),
        (["--math-mode", "2"], f"--math-mode {VW_ONLY}"),
        (
            ["--ccb_explore_adf", "--invert_hash", "names"],
            "--invert_hash cannot be used with --ccb_explore_adf: names of features are not kept for slots",
        ),
        (
            ["-ia", "-ib"],
            (
                "-i takes one model, not a and b: files of data follow -d; `onlineauto merge` makes one "
                "model of several"
            ),
        ),
        (
            ["-fa", "--predict_only_model", "--resume"],
            (
                "--predict_only_model and --resume exclude each other: a model that only predicts cannot "
                "learn on"
            ),
        ),
        (["--csv"], f"--csv {VW_ONLY}: AutoML.fit_table(frame), AutoMLRegressor.fit_table(frame) in Python"),
    ],
)
def test_refusals(words: list[str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value) == message


def test_a_string_is_split_as_a_shell_would() -> None:
    assert REGISTRY.parse(r"-d 'a b' -q a\ ") == REGISTRY.parse(["-d", "a b", "-q", "a "])


def test_a_registry_without_a_positional_option_refuses_a_word() -> None:
    from onlineauto.explorers.options import ExplorerOptions
    from onlineauto.options import Registry

    with pytest.raises(
        OptionError, match=r"^unexpected word 'events\.txt': this command takes options only$"
    ):
        Registry([ExplorerOptions]).parse(["--epsilon", "0.1", "events.txt"])


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
        ("-q abc", "--quadratic 'abc' has 3 characters and needs two namespaces (every word up to the next"),
        ("-q a", "--quadratic 'a' has 1 character and needs two namespaces"),
        ("-q ab events.txt", "--quadratic 'events.txt' has 10 characters and needs two namespaces"),
        (r"-q a\\x2", r"--quadratic 'a\\x2' has 4 characters"),
        ("-q aéb", "--quadratic 'aéb' has 3 characters"),
        ("--cubic ab", "--cubic 'ab' has 2 characters and needs three namespaces"),
        ("--interactions a", "--interactions 'a' has 1 character and needs two namespaces or more"),
        (f"{FULL_NAMES} user", f"{FULL_NAMES} 'user' needs two names or more with '|' between them"),
        (f"{FULL_NAMES} 'user|'", f"{FULL_NAMES} 'user|' has an empty name"),
        (f"{FULL_NAMES} 'user|a:'", f"{FULL_NAMES} 'user|a:': ':' stands for any namespace"),
        ("--quantile_tau 0.9", "--quantile_tau is for --loss_function quantile, but the loss is squared"),
        ("--expectile_q 0.2", "--expectile_q is for --loss_function expectile, but the loss is squared"),
        ("--logistic_min -1 --loss_function hinge", "--logistic_min is for --loss_function logistic, but"),
        ("--logistic_max 1", "--logistic_max is for --loss_function logistic, but the loss is squared"),
        ("--loss_function expectile", "--loss_function expectile needs --expectile_q, a number above 0 and"),
        (
            "--loss_function logistic --logistic_min 1",
            "--logistic_min 1.0 has to be less than --logistic_max 1.0",
        ),
        ("--min_prediction 2 --max_prediction 1", "--min_prediction 2.0 is above --max_prediction 1.0"),
        ("--cb 3 --cb_adf", "--cb and --cb_adf exclude each other"),
        ("--cb_explore 3 --cb_explore_adf", "--cb_explore and --cb_explore_adf exclude each other"),
        ("--cb_explore 3 --ccb_explore_adf", "--cb_explore and --ccb_explore_adf exclude each other"),
        ("--cb_adf -r scores", "--raw_predictions is for single-line learning, not for --cb_adf: in Python,"),
        (
            "--automl --cb_adf --search epsilon",
            "--search cannot have epsilon: logged rewards always favour less exploration, because",
        ),
        ("--automl --search cb_type", "--search cannot have cb_type on single lines, which log no action"),
        ("--automl --cb_adf --search lr", "--search cannot be lr; it takes some of interactions, "),
        ("--automl --cb_adf --search ,", "--search cannot be ,; it takes some of interactions, "),
        ("--automl --cb_adf --members wavy", "--members cannot be wavy; it takes some of features, waves, "),
        ("--automl --cb_adf --members waves,layer", "--members cannot have layer without features, from"),
        ("--automl --champion_test reward", "--champion_test cannot be reward on single lines: they log no"),
        (
            f"{ROBUST} --champion_test loss",
            "--champion_test has no effect with --estimator robust, which compares",
        ),
        (f"{ROBUST} --cost_range 0,1", "--cost_range has no effect with --estimator robust"),
        (f"{ONE_DIFF} --search learning_rate", "--search has no effect with --oracle_type one_diff"),
        (f"{ONE_DIFF} --feature_cost 0.1", "--feature_cost has no effect with --oracle_type one_diff"),
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
        (f"{FULL_NAMES} a|b", f"{FULL_NAMES} is not reproduced by --vw_exact: Vowpal Wabbit crosses"),
    ],
)
def test_options_that_exact_mode_does_not_reproduce_are_rejected(kind: str, words: str, message: str) -> None:
    assert REGISTRY.parse(f"{kind} {words}").warnings == ()
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(f"{kind} {words} --vw_exact")
    assert str(caught.value).startswith(message)


EXPLORING = "--cb_explore or --cb_explore_adf or --ccb_explore_adf"


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("--epsilon 0.1", f"--epsilon has no effect without {EXPLORING}"),
        ("--first_only --cb_adf", f"--first_only has no effect without {EXPLORING}"),
        ("--rank_all", "--rank_all has no effect without --cb_adf"),
        ("--search learning_rate --cb_adf", "--search has no effect without --automl"),
        ("--clip_p 0.1", f"--clip_p has no effect without --cb or --cb_adf or {EXPLORING}"),
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


_SEARCH = "--vw_exact --cb_explore_adf --automl 4"
_DECAY = "--cb_explore_adf --epsilon_decay"
_NOT_EXACT = "is not reproduced by --vw_exact"
_ONE = "exclude each other: there is one explorer"
_NOT_HERE = "is an option of Vowpal Wabbit that onlineauto does not have: leave it out; "
_SEVERAL = "are options of Vowpal Wabbit that onlineauto does not have"
_NN = "--automl finds interactions, of three namespaces too"

REFUSED = [
    # A search with other explorers than these four, or with penalties beside three of them.
    (
        f"{_SEARCH} --squarecb --elim",
        f"--automl with --elim {_NOT_EXACT}, which has it with ε-greedy, --first, ",
    ),
    (f"{_SEARCH} --regcb", f"--automl with --regcb {_NOT_EXACT}, "),
    (f"{_SEARCH} --regcbopt", f"--automl with --regcbopt {_NOT_EXACT}, "),
    (f"{_SEARCH} --synthcover", f"--automl with --synthcover {_NOT_EXACT}, "),
    (f"{_SEARCH} --bag 2", f"--automl with --bag {_NOT_EXACT}, "),
    (f"{_SEARCH} --cover 2 --cb_type ips", f"--automl with --cover {_NOT_EXACT}, "),
    (f"{_SEARCH} --rnd 1", f"--rnd {_NOT_EXACT}: "),
    (f"{_SEARCH} --epsilon_decay", f"--automl with --epsilon_decay {_NOT_EXACT}, "),
    ("--vw_exact --cb_explore 4 --automl 4 --bag 2", f"--automl with --bag {_NOT_EXACT}, "),
    ("--vw_exact --ccb_explore_adf --automl 4 --cover 3", f"--automl with --cover {_NOT_EXACT}, "),
    (
        f"{_SEARCH} --squarecb --l1 1e-4",
        f"--automl with --squarecb and --l1 {_NOT_EXACT}: a search has penalties ",
    ),
    (f"{_SEARCH} --softmax --l2 1e-4", f"--automl with --softmax and --l2 {_NOT_EXACT}: "),
    (f"{_SEARCH} --first 9 --l2 1e-4", f"--automl with --first and --l2 {_NOT_EXACT}: "),
    # Models of which actions share weights.
    (
        "--vw_exact --cb 4 --automl 3",
        f"--cb with 3 models {_NOT_EXACT}: unless the models of all live configs ",
    ),
    ("--vw_exact --cb 4 --automl 3 --cb_type dr", f"--cb with 6 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --bag 3", f"--cb_explore with 3 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --cover 2", f"--cb_explore with 6 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --epsilon_decay", f"--cb_explore with 3 models {_NOT_EXACT}: "),
    # Decaying ε beside another explorer, and of slots.
    (f"{_DECAY} --softmax", f"--softmax and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --first 9 --vw_exact", f"--first and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --squarecb", f"--squarecb and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --synthcover", f"--synthcover and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --bag 2", f"--bag and --epsilon_decay {_ONE}"),
    ("--ccb_explore_adf --epsilon_decay", "--epsilon_decay is not for --ccb_explore_adf; "),
    ("--ccb_explore_adf --epsilon_decay --vw_exact", "--epsilon_decay is not for --ccb_explore_adf; "),
    # Brent's method, and the trace.
    (f"{_SEARCH} --opt_func brentq", f"--opt_func {_NOT_HERE}bounds are found by bisection"),
    ("--nn 5", f"--nn {VW_ONLY}: {_NN}"),
    ("--daemon --quiet", f"--daemon {VW_ONLY}: `onlineauto serve` decides"),
    (
        "--nn 5 -d log.txt --affix +2 --save_per_pass --epsilom 1 --nn 5",
        f"--nn, --affix and --save_per_pass {_SEVERAL}; for --nn: {_NN}; for --save_per_pass: `--save_every ",
    ),
    ("--epsilom 1 --nn 5", "unknown option --epsilom; did you mean --epsilon?"),
    ("--cb_explore_adf --automl 4 --csv_trace", f"--csv_trace {_NOT_HERE}--journal has the decisions"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_unsupported_options_of_vw_are_named(words: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        *(f"{_SEARCH} --{explorer}" for explorer in ("first 9", "softmax", "squarecb", "cb_sample")),
        f"{_SEARCH} --l1 1e-4 --l2 1e-3 --cb_type dr",
        "--vw_exact --ccb_explore_adf --automl 3 --squarecb",
        "--vw_exact --cb_adf --automl 3 --l1 1e-4 --bag 2",
        "--vw_exact --cb_explore 4 --automl 2 --cb_type dr",
        "--vw_exact --cb_explore 4 --bag 4",
        "--cb_explore 4 --automl 3 --bag 3 --l1 1e-4",
        *(f"--cb_explore_adf --automl 3 --{explorer}" for explorer in ("regcb", "cover 2", "rnd 1")),
        f"{_DECAY} --automl 3",
        f"{_DECAY} --vw_exact",
    ],
)
def test_combinations_that_exact_mode_reproduces_are_accepted(words: str) -> None:
    assert REGISTRY.parse(words).supplied
