"""The pages about people and workspaces, a module each."""

from workspaces.views.refusals import csrf_failure, forbidden, locked_out, server_error

__all__ = ["csrf_failure", "forbidden", "locked_out", "server_error"]
