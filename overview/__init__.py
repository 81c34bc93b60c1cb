"""The site and its front page: the workspace overview."""

from overview.celery import app as celery_app

__all__ = ["celery_app"]
