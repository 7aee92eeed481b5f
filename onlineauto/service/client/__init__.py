"""A client of the service, with and without ``await``; it decides on its own while the service is away."""

from onlineauto.service.client.clients import AsyncClient, Client
from onlineauto.service.client.messages import Decision, Retry

__all__ = ["AsyncClient", "Client", "Decision", "Retry"]
