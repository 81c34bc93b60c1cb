"""Settings, all from the environment.

With nothing set this is the embedded default: SQLite, an in-memory broker and channel layer, and
keys kept in `VAR_DIR`. `DATABASE_URL` (PostgreSQL) and `REDIS_URL` (Redis or Valkey) turn it into
production. Every variable may come from a file instead: `SECRET_KEY_FILE=/run/secrets/key`.
The variables are documented in docs/operations.md.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
from pathlib import Path

import environ
import structlog
from celery.schedules import schedule
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from overview.logs import on_one_line, with_trace_id, without_links, without_refused_traces

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()

VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
DATABASE_URL = env.str("DATABASE_URL", default="")
REDIS_URL = env.str("REDIS_URL", default="")
DEBUG = env.bool("DEBUG", default=False)
# The demo is part of the embedded default only; DEMO=0 starts without it.
DEMO = env.bool("DEMO", default=not DATABASE_URL)


def kept_key(name: str, make: str) -> str:
    """A secret from the environment; the embedded default makes one and keeps it in `VAR_DIR`."""
    value: str = env.str(name, default="")
    if value:
        return value
    if DATABASE_URL:
        raise ImproperlyConfigured(f"Set {name} (or {name}_FILE): every process needs the same.")
    path = VAR_DIR / name.lower()
    if not path.exists():
        # The database in there has everybody's sessions.
        VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(make, encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()


SECRET_KEY = kept_key("SECRET_KEY", secrets.token_urlsafe(50))
# Encrypts the connectors' secrets. The first key encrypts, each one decrypts: put a new one first.
SECRETS_KEYS = kept_key("SECRETS_KEYS", Fernet.generate_key().decode()).split(",")

ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "overview",
    "connectors",
    "workspaces",
    "channels",
    "axes",
    "django_structlog",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "overview.operators.tracing.web_spans",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "overview.private_pages.PrivatePagesMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "overview.urls"
ASGI_APPLICATION = "overview.asgi.application"
WEB_THREADS = env.int("WEB_THREADS", default=32)
WEB_DRAIN_SECONDS = env.float("WEB_DRAIN_SECONDS", default=0)

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "workspaces.context_processors.shell",
            ],
        },
    },
]

# --- People -----------------------------------------------------------------------------------

AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "workspaces:sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "workspaces:sign_in"
SIGN_IN_LINK_SECONDS = env.int("SIGN_IN_LINK_SECONDS", default=3600)

AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "workspaces.access.attempted_address"
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "workspaces.views.locked_out"
AXES_ENABLE_ACCESS_FAILURE_LOG = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

# --- Stores -----------------------------------------------------------------------------------

if DATABASE_URL:
    DATABASES = {"default": env.db_url("DATABASE_URL")}
    # psycopg's pool returns a connection after each request and task; see docs/operations.md for
    # how many that makes.
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    # After a restart of PostgreSQL each connection in the pool would fail somebody's page once.
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": env.int("DATABASE_POOL_SIZE", default=8),
        "timeout": 10,
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": VAR_DIR / "db.sqlite3",
            # Opening it anew for each request would take longer than most requests.
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                # A deferred transaction that upgrades to a write fails at once when another one
                # writes; IMMEDIATE waits for its turn.
                "transaction_mode": "IMMEDIATE",
                "timeout": 10,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                " PRAGMA temp_store=MEMORY;",
            },
            # A file, as in real life: an in-memory database has neither WAL nor a second process.
            "TEST": {"NAME": VAR_DIR / f"test-{os.getpid()}.sqlite3"},
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if REDIS_URL:
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": REDIS_URL,
            "OPTIONS": {"serializer": "overview.stores.JsonSerializer"},
        }
    }
    # The core layer of channels_redis closes idle websockets with redis-py 8; this one does not.
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
        }
    }
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# --- Times and limits, seconds unless the name says otherwise -----------------------------------

FACET_FRESH_SECONDS = env.float("FACET_FRESH_SECONDS", default=60)
FACET_MAX_AGE_SECONDS = env.float("FACET_MAX_AGE_SECONDS", default=600)
FACET_LISTING_SECONDS = env.float("FACET_LISTING_SECONDS", default=300)
FACET_LISTING_RETRY_SECONDS = env.float("FACET_LISTING_RETRY_SECONDS", default=60)
FACET_READ_TIMEOUT_SECONDS = env.float("FACET_READ_TIMEOUT_SECONDS", default=5)
# All members of a workspace see the same panel, apps and connectors.
PANEL_SHARED_SECONDS = env.float("PANEL_SHARED_SECONDS", default=5)
TEMPLATE_LISTING_SECONDS = env.float("TEMPLATE_LISTING_SECONDS", default=300)
RESOURCE_ARGUMENTS_MAX_CHARS = env.int("RESOURCE_ARGUMENTS_MAX_CHARS", default=49_600)
RESOURCE_ARGUMENTS_MAX_SIZE = env.int("RESOURCE_ARGUMENTS_MAX_SIZE", default=10_485_760)
RESOURCE_ARGUMENTS_MAX_URIS = env.int("RESOURCE_ARGUMENTS_MAX_URIS", default=32)
RESOURCE_ARGUMENTS_READ_SECONDS = env.float("RESOURCE_ARGUMENTS_READ_SECONDS", default=10)
RESOURCE_ARGUMENTS_TOTAL_SECONDS = env.float("RESOURCE_ARGUMENTS_TOTAL_SECONDS", default=30)
RESOURCE_BUDGET = env.str("RESOURCE_BUDGET", default="100/second")
RESOURCE_BUDGET_BURST = env.int("RESOURCE_BUDGET_BURST", default=1000)
ENDPOINT_MAX_BODY_BYTES = env.int("ENDPOINT_MAX_BODY_BYTES", default=4 * 1024 * 1024)
TOOL_CALL_SECONDS = env.float("TOOL_CALL_SECONDS", default=60)
CHECK_SECONDS = env.float("CHECK_SECONDS", default=300)
CHECK_WATCHED_SECONDS = env.float("CHECK_WATCHED_SECONDS", default=30)
CONNECT_SECONDS = env.float("CONNECT_SECONDS", default=10)
LISTING_MAX_PAGES = env.int("LISTING_MAX_PAGES", default=50)
LISTING_MAX_ENTRIES = env.int("LISTING_MAX_ENTRIES", default=5000)
CONNECTOR_MAX_BODY_BYTES = env.int("CONNECTOR_MAX_BODY_BYTES", default=12 * 1024 * 1024)
CONNECTION_IDLE_SECONDS = env.float("CONNECTION_IDLE_SECONDS", default=600)
TRACE_DAYS = env.int("TRACE_DAYS", default=30)
AUDIT_DAYS = env.int("AUDIT_DAYS", default=365)

# Networks that connectors may reach besides public addresses, e.g. "10.1.0.0/16,127.0.0.0/8".
# The demo's own servers are on this machine.
CONNECTOR_ALLOWED_NETWORKS = [
    ipaddress.ip_network(network)
    for network in env.list(
        "CONNECTOR_ALLOWED_NETWORKS", default=["127.0.0.0/8", "::1/128"] if DEMO else []
    )
]
# What browsers know this site by, e.g. "https://overview.example.com". With https, authorization
# servers can fetch a description of it instead of registering it.
SITE_URL: str = env.str("SITE_URL", default="")
# Where an operator registered this site: {issuer: {"client_id": "…", "client_secret": "…"}}.
OAUTH_CLIENTS: dict[str, dict[str, str]] = env.json("OAUTH_CLIENTS", default={})
# Through which they are reached: "http://[user:password@]proxy:3128". HTTPS_PROXY and the like are
# not obeyed, because no proxy may choose the address.
CONNECTOR_PROXY = env.str("CONNECTOR_PROXY", default="")
# Whether servers are told in which trace a request to them belongs.
CONNECTOR_TRACE_CONTEXT = env.bool("CONNECTOR_TRACE_CONTEXT", default=False)
# Commands that an admin may pick for a stdio connector, by name: {"files": ["mcp-files", "/srv"]}.
STDIO_SERVERS: dict[str, list[str]] = env.json("STDIO_SERVERS", default={})

# --- Celery -----------------------------------------------------------------------------------

CELERY_BROKER_URL = REDIS_URL or "wake://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_BACKEND = None
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker that gave up after a hundred tries would stay away when the broker comes back.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = env.int("WORKER_THREADS", default=16)
CELERY_BEAT_SCHEDULE = {
    # A sweep that found no worker in time is worth nothing: the next one replaces it.
    # Not too soon: it is the clock's time that a worker with its own compares.
    name: {"task": task, "schedule": schedule(seconds), "options": {"expires": seconds * 2 + 8}}
    for name, task, seconds in [
        ("facets", "overview.tasks.sweep_facets", 1.0),
        ("subscriptions", "overview.tasks.sweep_subscriptions", 5.0),
        ("checks", "connectors.tasks.sweep_checks", 2.0),
        ("retention", "connectors.tasks.forget_old", 3600.0),
    ]
}

# --- Static files -----------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "overview.static.ModuleManifestStorage"},
}

# --- Security ---------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
IS_HTTPS = env.bool("IS_HTTPS", default=SECURE_SSL_REDIRECT)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if IS_HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=IS_HTTPS)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=IS_HTTPS)
TRUST_PROXY_HEADERS = env.bool("TRUST_PROXY_HEADERS", default=False)
if TRUST_PROXY_HEADERS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    USE_X_FORWARDED_HOST = True
# Only behind a proxy that sets or removes `traceparent` itself.
TRUST_TRACE_CONTEXT = env.bool("TRUST_TRACE_CONTEXT", default=False)
# Chromium sends "localhost" cookies to every port of the machine: two products must not share one.
# With the prefix a browser takes them from this very host alone, over https: no neighbour below the
# same domain can plant one. Source: RFC 6265bis, "The __Host- Prefix".
_PREFIX = "__Host-" if IS_HTTPS else ""
SESSION_COOKIE_NAME = f"{_PREFIX}overview_session"
CSRF_COOKIE_NAME = f"{_PREFIX}overview_csrf"
# Forms carry the token themselves; no script reads the cookie.
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "workspaces.views.csrf_failure"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# --- Language, time, logs ----------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# Off without it: who scrapes /metrics sends it as a bearer token.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
# One line per request, when it is answered.
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
# It believes any X-Forwarded-For; `operators.log_context` notes who really connected.
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO" if DATABASE_URL else "WARNING")
LOG_FORMAT = env.str("LOG_FORMAT", default="json" if DATABASE_URL else "text")
_shared_processors: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    without_links,
    without_refused_traces,
    with_trace_id,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
structlog.configure(
    processors=[*_shared_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                *(
                    [structlog.processors.JSONRenderer()]
                    if LOG_FORMAT == "json"
                    else [
                        on_one_line,
                        structlog.dev.ConsoleRenderer(
                            colors=False, exception_formatter=structlog.dev.plain_traceback
                        ),
                    ]
                ),
            ],
            "foreign_pre_chain": _shared_processors,
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # The HTTP client logs addresses with their query at INFO; those may hold secrets.
        name: {"level": "WARNING"}
        for name in (
            *("httpx2", "httpcore2", "urllib3", "mcp"),
            *("celery", "kombu", "asyncio", "uvicorn.access"),
        )
    },
}
