from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.topics.broker import Broker, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker inside librdkafka."""
    pytest.importorskip("confluent_kafka")
    with running() as broker:
        yield broker
