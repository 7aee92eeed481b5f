import pytest

from tests.bench.harm import Favourite, gain


@pytest.mark.parametrize("epsilon", [0.045, 0.2])
def test_a_log_with_a_favourite_does_no_harm(epsilon: float) -> None:
    log = Favourite.draw(events=4000, actions=3, epsilon=epsilon, seed=1)
    for who in ("champion", "stack"):
        assert gain(log, who) > -0.01


def test_the_truth_of_a_log_is_that_of_its_text() -> None:
    log = Favourite.draw(events=50, actions=3, epsilon=0.5, seed=0)
    events = log.text.decode().strip().split("\n\n")
    assert len(events) == len(log.rewards) == 50
    for event, rewards in zip(events, log.rewards, strict=True):
        assert rewards[int("|x 1" in event)] == rewards.max() == 0.9
