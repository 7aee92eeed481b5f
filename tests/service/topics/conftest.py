from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.topics.broker import Broker, running


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Yield a broker inside librdkafka."""
    pytest.importorskip("confluent_kafka")
    with running() as broker:
        yield broker
