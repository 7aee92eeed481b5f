"""Learning from the topics of Kafka, and of services that speak its protocol."""

from onlineauto.service.topics.topic_source import TopicSource

__all__ = ["TopicSource"]
