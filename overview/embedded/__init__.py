"""The embedded default: a Celery worker and beat inside the web process, and no other service."""
