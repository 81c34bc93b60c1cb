from django.apps import AppConfig


class OverviewConfig(AppConfig):
    name = "overview"

    def ready(self) -> None:
        from overview.operators import log_context, tracing

        log_context.connect()
        tracing.connect()
        tracing.start()
