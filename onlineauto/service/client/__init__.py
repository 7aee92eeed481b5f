"""A client of the service, with and without ``await``; it decides on its own while the service is away."""

from onlineauto.service.client.clients import AsyncClient, Client
from onlineauto.service.client.messages import Retry, ServiceDecision

__all__ = ["AsyncClient", "Client", "Retry", "ServiceDecision"]
