from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class ConnectorsConfig(AppConfig):
    name = "connectors"

    def ready(self) -> None:
        from connectors.sessions.outward import Outward, go_out_by
        from connectors.sessions.proxy import proxy_at

        try:
            proxy = proxy_at(settings.CONNECTOR_PROXY) if settings.CONNECTOR_PROXY else None
        except ValueError as problem:
            raise ImproperlyConfigured(f"CONNECTOR_PROXY cannot be used: {problem}.") from None
        go_out_by(Outward(proxy, tells_trace=settings.CONNECTOR_TRACE_CONTEXT))
